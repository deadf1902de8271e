"""torch's first forms of weight_norm and spectral_norm, which compute the weight before each forward."""

from __future__ import annotations

from typing import Any, TypeVar

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module, Parameter
from jitgrad.nn.utils.parametrizations import SpectralNorm, axis_of_rows, norm_except

_M = TypeVar("_M", bound=Module)


class _WeightNormHook:
    """Sets ``name`` from ``name_g`` and ``name_v``."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name: str = name
        self.dim: int | None = dim

    def weight(self, module: Any) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))  # type: ignore[no-any-return]

    def __call__(self, module: Any, _args: Any) -> None:
        object.__setattr__(module, self.name, self.weight(module))


class _SpectralNormHook:
    """Sets ``name`` from ``name_orig``, ``name_u`` and ``name_v``; ``norm`` holds the options."""

    def __init__(self, name: str, norm: SpectralNorm) -> None:
        self.name: str = name
        self.norm: SpectralNorm = norm

    def weight(self, module: Any, iterates: bool = False) -> Tensor:
        norm, name = self.norm, self.name
        norm.train(iterates and module.training)
        object.__setattr__(norm, "_u", getattr(module, f"{name}_u"))  # those that load_state_dict changes
        object.__setattr__(norm, "_v", getattr(module, f"{name}_v"))
        return norm(getattr(module, f"{name}_orig"))  # type: ignore[no-any-return]

    def __call__(self, module: Any, _args: Any) -> None:
        object.__setattr__(module, self.name, self.weight(module, iterates=True))


def _taken(what: str, module: Module, name: str) -> Tensor:
    """The parameter ``name``, which is no parameter of ``module`` any more."""
    weight = module.__dict__.get(name)
    if name not in module._parameter_names or not isinstance(weight, Tensor):
        raise ArgumentError(f"{what}: {type(module).__name__} has no parameter {name!r}")
    delattr(module, name)
    return weight


def weight_norm(module: _M, name: str = "weight", dim: int | None = 0) -> _M:
    """Train ``name_g``, lengths, and ``name_v``, directions, of the slices of the parameter ``name`` along ``dim``.

    Before each forward ``module.<name>`` is set to ``g * v / |v|``. `parametrizations.weight_norm` computes it at each use.

    Raises:
        ArgumentError: there is no such parameter.
    """
    weight = _taken("weight_norm", module, name)
    with no_grad():
        lengths = norm_except(weight, dim)
    module.register_parameter(f"{name}_g", Parameter(lengths, weight.requires_grad))
    module.register_parameter(f"{name}_v", Parameter(weight.detach(), weight.requires_grad))
    hook = _WeightNormHook(name, dim)
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def spectral_norm(
    module: _M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> _M:
    """Train ``name_orig``; before each forward ``module.<name>`` is set to it, divided by its largest singular value.

    ``name_u`` and ``name_v`` are buffers of the power method, which takes ``n_power_iterations`` steps in training.
    ``dim`` is the axis of the rows: 1 for transposed convolutions, else 0, unless it is given.

    Raises:
        ArgumentError: there is no such parameter.
    """
    weight = _taken("spectral_norm", module, name)
    # in this form alone torch's steps begin with the vector over the rows
    norm = SpectralNorm(weight, n_power_iterations, axis_of_rows(module, dim), eps, from_rows=True)
    module.register_parameter(f"{name}_orig", weight)
    for side in ("u", "v"):
        module.register_buffer(f"{name}_{side}", getattr(norm, f"_{side}"))
    hook = _SpectralNormHook(name, norm)
    object.__setattr__(module, name, weight.detach().clone())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: _M, name: str = "weight") -> _M:
    """Make ``name`` a parameter again, with its value now. Raises ArgumentError if `weight_norm` did not change it."""
    return _removed("remove_weight_norm", module, name, _WeightNormHook, ("g", "v"))


def remove_spectral_norm(module: _M, name: str = "weight") -> _M:
    """Make ``name`` a parameter again, with its value now. Raises ArgumentError if `spectral_norm` did not change it."""
    return _removed("remove_spectral_norm", module, name, _SpectralNormHook, ("orig", "u", "v"))


def _removed(what: str, module: _M, name: str, kind: type[Any], parts: tuple[str, ...]) -> _M:
    hooks = module.__dict__.get("_forward_pre_hooks", [])
    hook = next((h for h in hooks if isinstance(h, kind) and h.name == name), None)
    if hook is None:
        raise ArgumentError(f"{what}: {type(module).__name__}.{name} is not normalised")
    with no_grad():
        weight = hook.weight(module)
    hooks.remove(hook)
    for part in (name, *[f"{name}_{part}" for part in parts]):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.clone()))
    return module
