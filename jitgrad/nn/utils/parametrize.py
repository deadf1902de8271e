"""torch's nn.utils.parametrize: attributes of modules that are functions of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.container import ModuleDict
from jitgrad.nn.module import Module, Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "type_before_parametrizations",
]  # fmt: skip


class ParametrizationList(Module):
    """The parametrizations of one tensor, applied one after the other to ``original`` or to ``original0``, ``original1``, …

    The first one's ``right_inverse``, if it has one, may return several tensors, which are its arguments then.
    """

    def __init__(self, parts: list[Module], tensor: Tensor) -> None:
        for k, part in enumerate(parts):
            setattr(self, str(k), part)
        self.count: int = len(parts)
        self.originals: int | None = None  # how many tensors there are, if the first part takes several
        trains = isinstance(tensor, Parameter)  # type: ignore[arg-type]
        value = _inverse(parts, tensor)
        if isinstance(value, Tensor):
            self._hold("original", value, tensor, trains)
            return
        listed = list(value)
        self.originals = len(listed)
        for k, part_of_value in enumerate(listed):
            self._hold(f"original{k}", part_of_value, tensor, trains)

    def _hold(self, name: str, value: Tensor, tensor: Tensor, trains: bool) -> None:
        if trains:
            self.register_parameter(name, Parameter(value.detach(), tensor.requires_grad))
        else:
            self.register_buffer(name, value.detach())

    def _parts(self) -> list[Any]:
        return [getattr(self, str(k)) for k in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, k: int) -> Any:
        return self._parts()[k]

    def append(self, part: Module) -> None:
        """Apply ``part`` after those that are there; the value of the originals is changed so that the result stays."""
        new = _inverse([part], self())
        setattr(self, str(self.count), part)
        self.count += 1
        with no_grad():
            self._store(_inverse(self._parts()[:-1], new))

    def right_inverse(self, value: Tensor) -> None:
        """Change the originals so that the parametrized tensor is ``value``, if the parametrizations can be inverted."""
        with no_grad():
            self._store(_inverse(self._parts(), value))

    def _store(self, value: Any) -> None:
        for held, new in zip(self._held(), [value] if isinstance(value, Tensor) else value, strict=True):
            held.copy_(new)

    def _held(self) -> list[Tensor]:
        names = ["original"] if self.originals is None else [f"original{k}" for k in range(self.originals)]
        return [getattr(self, name) for name in names]

    def forward(self) -> Tensor:
        first, *later = self._parts()
        value: Tensor = first(*self._held())
        for part in later:
            value = part(value)
        return value


def _inverse(parts: list[Any], value: Any) -> Any:
    """What ``parts`` map to ``value``; a part without ``right_inverse`` is taken for the identity, as in torch."""
    with no_grad():
        for part in reversed(parts):
            if hasattr(part, "right_inverse"):
                try:
                    value = part.right_inverse(value)
                except NotImplementedError:
                    continue
    return value


# The values of parametrized tensors within ``cached()``, by module and name.
_CACHE: ContextVar[dict[tuple[int, str], Tensor] | None] = ContextVar("parametrized tensors", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Within it, each parametrized tensor is computed once."""
    values = _CACHE.get()
    token = _CACHE.set({} if values is None else values)
    try:
        yield
    finally:
        _CACHE.reset(token)


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        parametrization = getattr(self.parametrizations, name)
        if (values := _CACHE.get()) is None:
            return parametrization()  # type: ignore[no-any-return]
        key = (id(self), name)
        if key not in values:
            values[key] = parametrization()
        return values[key]

    def put(self: Any, value: Any) -> None:
        getattr(self.parametrizations, name).right_inverse(value)

    return property(get, put)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Make the parameter or buffer ``tensor_name`` of ``module`` the result of ``parametrization``; returns ``module``.

    What was the tensor becomes ``module.parametrizations.<tensor_name>.original``. Assigning to the attribute goes
    through ``parametrization.right_inverse``. Several parametrizations are applied in the order of registration.

    Raises:
        ArgumentError: there is no such tensor. ShapeError: the result has another shape or dtype, unless ``unsafe``.
    """
    if is_parametrized(module, tensor_name):
        held: Any = module.parametrizations  # type: ignore[attr-defined]
        before = getattr(module, tensor_name)
        _check(tensor_name, before, parametrization(before), unsafe)
        getattr(held, tensor_name).append(parametrization)
        return module
    tensor = module.__dict__.get(tensor_name)
    if not isinstance(tensor, Tensor) or tensor_name not in {**module._parameter_names, **module._buffer_names}:
        raise ArgumentError(f"register_parametrization: {type(module).__name__} has no parameter or buffer {tensor_name!r}")
    made = ParametrizationList([parametrization], tensor)
    with no_grad():
        _check(tensor_name, tensor, made(), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        base = type(module)
        module.__class__ = type(f"Parametrized{base.__name__}", (base,), {"__module__": base.__module__})
        module.parametrizations = ModuleDict({})
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made  # type: ignore[attr-defined]
    return module


def _check(name: str, tensor: Tensor, result: Any, unsafe: bool) -> None:
    if unsafe or (isinstance(result, Tensor) and (result.shape, result.dtype) == (tensor.shape, tensor.dtype)):
        return
    found = result.aval if isinstance(result, Tensor) else type(result).__name__
    raise ShapeError(
        f"register_parametrization: {name} is {tensor.aval}, its parametrization gives {found}; unsafe=True allows that"
    )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether ``module`` has a parametrized tensor, or this one."""
    held = module.__dict__.get("parametrizations")
    if not isinstance(held, ModuleDict) or not len(held):
        return False
    return tensor_name is None or tensor_name in held


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make ``tensor_name`` an ordinary tensor again: its value now, or the original with ``leave_parametrized=False``.

    Raises:
        ArgumentError: it is not parametrized, or there is no single original to leave.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"remove_parametrizations: {type(module).__name__}.{tensor_name} is not parametrized")
    lists: Any = module.parametrizations  # type: ignore[attr-defined]
    made: Any = getattr(lists, tensor_name)
    if not leave_parametrized and made.originals is not None:
        raise ArgumentError(
            f"remove_parametrizations: {tensor_name} comes from {made.originals} tensors; use leave_parametrized=True"
        )
    first = made._held()[0]
    with no_grad():
        value = made().clone() if leave_parametrized else first
    trains = bool(made._parameter_names)
    del lists[tensor_name]
    delattr(type(module), tensor_name)
    if not len(lists):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if trains:
        module.register_parameter(tensor_name, Parameter(value.detach(), first.requires_grad))
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class of ``module`` as it was written."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
