"""Module: a function with parameters, buffers and other modules as attributes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, CheckpointError, TraceError, shown
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.nn.module_hooks import Hooked
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.inplace import assign
from jitgrad.ops.memory_formats import check_memory_format
from jitgrad.ops.placement import names_device, replace_data


class _ParameterKind:
    """``nn.Parameter(data)`` is a leaf tensor over ``data`` that requires grad, which a Module
    registers as a parameter.

    A parameter is an ordinary Tensor, the same as a leaf made with ``requires_grad=True``, and
    ``isinstance(x, nn.Parameter)`` asks whether ``x`` is one. With ``requires_grad=False`` it is a
    parameter that is frozen from the start: a Module registers it, too.
    """

    def __init__(self) -> None:
        self._frozen: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # by id

    def __call__(self, data: Any, requires_grad: bool = True) -> Tensor:
        parameter = detached(asarray(data)).requires_grad_(requires_grad)
        if not requires_grad:
            self._frozen[id(parameter)] = parameter
        return parameter

    def __instancecheck__(self, instance: Any) -> bool:
        if not isinstance(instance, Tensor) or not instance.is_leaf:
            return False
        return instance.requires_grad or self._frozen.get(id(instance)) is instance

    def __repr__(self) -> str:
        return "Parameter"


Parameter: _ParameterKind = _ParameterKind()


class LoadResult(NamedTuple):
    """Names that ``load_state_dict(strict=False)`` missed in the state, and unused ones."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"LoadResult(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module(Hooked):
    """Base class of layers and models: assign parameters and Modules, define ``forward``.

    A leaf Tensor that requires grad becomes a parameter when it is assigned, and stays one if it is
    frozen later. Modules in a list or tuple attribute are parts, too. Attributes are ordinary
    Python ones, so @jit guards them like any others.
    """

    training: bool
    _parameter_names: dict[str, None]
    _buffer_names: dict[str, bool]

    def __new__(cls, *_args: Any, **_keywords: Any) -> Self:
        self = object.__new__(cls)
        # set here, not in __init__, so that a subclass need not call super().__init__() first
        self.__dict__.update(training=True, _parameter_names={}, _buffer_names={})
        return self

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """The result of the module; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    # --- registering ------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if Parameter.__instancecheck__(value) and not isinstance(getattr(type(self), name, None), property):
            self._parameter_names[name] = None
            self._buffer_names.pop(name, None)
        elif name in self._parameter_names and value is not None and value is not self.__dict__.get(name):  # as x.weight += y
            given = value.aval if isinstance(value, Tensor) else type(value).__name__
            raise ArgumentError(
                f"{type(self).__name__}.{name} is a parameter; {given} without requires_grad would no longer be "
                "trained. Wrap it in nn.Parameter(...)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._parameter_names.pop(name, None)
        self._buffer_names.pop(name, None)
        object.__delattr__(self, name)

    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Make ``parameter`` a parameter ``name``, even if it does not require grad yet."""
        self._parameter_names[name] = None
        self.__dict__[name] = parameter

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Make ``tensor`` untrained state ``name``, in state_dict if ``persistent``."""
        self._buffer_names[name] = persistent
        self.__dict__[name] = None if tensor is None else asarray(tensor)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the part ``name``."""
        setattr(self, name, module)

    # --- walking ----------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Modules in attributes, and in lists and tuples that are attributes, with their names."""
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, (list, tuple)):
                yield from ((f"{name}.{k}", part) for k, part in enumerate(value) if isinstance(part, Module))

    def children(self) -> Iterator[Module]:
        """The direct parts."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all parts of parts, with dotted names; each once."""
        visited: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if id(module) in visited and remove_duplicate:
                continue
            visited.add(id(module))
            yield name, module
            parts = [(f"{name}.{key}" if name else key, part) for key, part in module.named_children()]
            stack.extend(reversed(parts))

    def get_submodule(self, target: str) -> Module:
        """The module that `named_modules` calls ``target``, such as "blocks.0.norm". Raises AttributeError."""
        found: Module = _found(target, dict(self.named_modules(remove_duplicate=False)), self, "module")
        return found

    def get_parameter(self, target: str) -> Tensor:
        """The parameter that `named_parameters` calls ``target``. Raises AttributeError."""
        found: Tensor = _found(target, dict(self.named_parameters(remove_duplicate=False)), self, "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer that `named_buffers` calls ``target``. Raises AttributeError."""
        found: Tensor = _found(target, dict(self.named_buffers()), self, "buffer")
        return found

    def modules(self) -> Iterator[Module]:
        """This module and all parts of parts."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All parameters with dotted names; a shared one once, under its first name. Without ``recurse``
        those of this module alone."""
        yield from self._tensors(prefix, lambda module: module._parameter_names, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names; without ``recurse`` those of this module alone."""
        yield from self._tensors(prefix, lambda module: module._buffer_names, recurse, remove_duplicate)

    def _tensors(
        self, prefix: str, names: Callable[[Module], Mapping[str, Any]], recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        visited: set[int] = set()
        modules = self.named_modules(prefix, remove_duplicate) if recurse else iter([(prefix, self)])
        for path, module in modules:
            for name in names(module):
                tensor = module.__dict__[name]
                if tensor is None or (remove_duplicate and id(tensor) in visited):
                    continue
                visited.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """All parameters, each once; with ``recurse=False`` those of this module alone."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once; with ``recurse=False`` those of this module alone."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def apply(self: Self, function: Callable[[Module], Any]) -> Self:
        """Call ``function`` on every part, this module last."""
        for module in reversed(list(self.modules())):
            function(module)
        return self

    # --- modes and gradients ----------------------------------------------------------------------

    def train(self: Self, mode: bool = True) -> Self:
        """Set ``training``, which dropout and batch norm read, on this module and all parts."""
        for module in self.modules():
            object.__setattr__(module, "training", bool(mode))
        return self

    def eval(self: Self) -> Self:
        """``train(False)``."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set ``.grad`` of all parameters to None, or those that are not None to zeros."""
        for parameter in self.parameters():
            parameter.zero_grad(set_to_none)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Let all parameters collect gradients, or freeze them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    # --- state ------------------------------------------------------------------------------------

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and persistent buffers under all their names."""
        for path, module in self.named_modules(remove_duplicate=False):
            kept = [name for name, persistent in module._buffer_names.items() if persistent]
            for name in (*module._parameter_names, *kept):
                tensor = module.__dict__[name]
                if tensor is not None:
                    yield f"{path}.{name}" if path else name, tensor

    def state_dict(
        self, *, destination: dict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """Parameters and persistent buffers by dotted name after ``prefix``, not copied; detached, unless ``keep_vars``.

        They are added to ``destination``, where that is given.
        """
        state = {} if destination is None else destination
        state.update({prefix + name: tensor if keep_vars else detached(tensor) for name, tensor in self._state()})
        return state

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Copy ``state`` into parameters and buffers in place: all of it or, on an error, nothing.

        Raises:
            CheckpointError: names are missing or unexpected (``strict``), or a shape or dtype does
                not fit.
        """
        if not isinstance(state, Mapping):
            raise CheckpointError(f"load_state_dict of {type(self).__name__}: expected a dict of tensors, got {shown(state)}")
        own = dict(self._state())
        result = LoadResult([k for k in own if k not in state], [k for k in state if k not in own])
        wrong = [f"missing: {', '.join(result.missing_keys)}"] if strict and result.missing_keys else []
        if strict and result.unexpected_keys:
            wrong.append(f"unexpected: {', '.join(result.unexpected_keys)}")
        given = {name: asarray(state[name]) for name in own if name in state}
        for name, value in given.items():
            target = own[name].aval
            if value.shape != target.shape or not np.can_cast(value.dtype, target.dtype, "same_kind"):
                wrong.append(f"{name}: the module has {target}, the state {value.aval}")
        if wrong:
            names = strict and (result.missing_keys or result.unexpected_keys)
            remedy = ". strict=False leaves out names that are on one side only" if names else ""
            raise CheckpointError(f"load_state_dict of {type(self).__name__}: {'; '.join(wrong)}{remedy}")
        with no_grad():
            for name, value in given.items():
                assign(own[name], value)
        return result

    def to(
        self: Self,
        *where: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Convert floating parameters, buffers and gradients in place, or move all of them:
        ``to(jg.float64)``, ``to("cuda")``, ``to("cuda", jg.float16)``.

        ``non_blocking``, ``memory_format`` and the device "meta", of torch's tensors without data, change nothing.

        Raises:
            ArgumentError: the dtype is no floating one, or there is no such device.
            CudaError: this machine has no CUDA device.
            TraceError: called inside a @jit function.
        """
        check_memory_format("Module.to", memory_format)
        for given in where:
            if names_device(given) or given == "meta":
                device = given
            else:
                dtype = given
        device = None if str(device) == "meta" else device
        target = None if dtype is None else check_supported("Module.to", dtype)
        if target is not None and target.kind != "f":
            raise ArgumentError(f"Module.to: expected a floating dtype, got {target}")
        if current_interpreter.get().tracing:
            raise TraceError("Module.to inside a @jit function: convert the module before the call")
        for tensor in (*self.parameters(), *self.buffers()):
            replace_data(tensor, target, device)
        return self

    def float(self: Self) -> Self:
        """``to(float32)``."""
        return self.to(np.float32)

    def double(self: Self) -> Self:
        """``to(float64)``."""
        return self.to(np.float64)

    def half(self: Self) -> Self:
        """``to(float16)``."""
        return self.to(np.float16)

    def cuda(self: Self, device: Any = "cuda") -> Self:
        """``to("cuda")``; torch's ``device`` can be 0 too."""
        return self.to(device=device)

    def cpu(self: Self) -> Self:
        """``to("cpu")``."""
        return self.to("cpu")

    # --- printing ---------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Text between the brackets of the repr, besides the parts."""
        return ""

    def __repr__(self) -> str:
        parts = [f"({name}): " + repr(part).replace("\n", "\n  ") for name, part in self.named_children()]
        extra = self.extra_repr()
        lines = [*extra.split("\n"), *parts] if extra else parts
        if not parts and len(lines) < 2:
            return f"{type(self).__name__}({extra})"
        return "\n  ".join([f"{type(self).__name__}(", *lines]) + "\n)"


def _found(target: str, named: Mapping[str, Any], module: Module, kind: str) -> Any:
    """What ``module`` calls ``target``. Raises AttributeError."""
    if target not in named:
        raise AttributeError(f"{type(module).__name__} has no {kind} {target!r}{meant(target, named)}")
    return named[target]
