"""jax's names of devices and settings, for programs that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import optree

from jitgrad.autograd.functional import jvp
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.device import cuda as _cuda
from jitgrad.jit.shape_struct import ShapeDtypeStruct
from jitgrad.ops.creation import asarray
from jitgrad.ops.methods import install


class Config:
    """``jax.config``: what programs set at their start, as far as it has a meaning here."""

    _KNOWN: ClassVar[Mapping[str, str]] = {
        "jax_enable_x64": "", "jax_platform_name": "", "jax_platforms": "", "jax_default_matmul_precision": "",
        "jax_compilation_cache_dir": "", "jax_numpy_rank_promotion": "", "jax_log_compiles": "",
        "jax_threefry_partitionable": "",
        "jax_debug_nans": "use `with jitgrad.detect_anomaly():`",
        "jax_disable_jit": "use `with jitgrad.disable_jit():`",
    }  # fmt: skip

    def __init__(self) -> None:
        self._values: dict[str, Any] = {"jax_enable_x64": True}

    def update(self, name: str, val: Any) -> None:
        """Note a setting that changes nothing here: numbers of 64 bits are there always, and devices are chosen by hand.

        Raises ArgumentError for a setting that would have to change something.
        """
        advice = self._KNOWN.get(name)
        if advice is None:
            raise ArgumentError(f"jax.config has no {shown(name)}: it takes {', '.join(self._KNOWN)}")
        if advice and val:
            raise ArgumentError(f"jax.config.update({shown(name)}, {shown(val)}) has no meaning here: {advice}")
        self._values[name] = val

    def read(self, name: str) -> Any:
        """What was set, or None."""
        return self._values.get(name)

    def __getattr__(self, name: str) -> Any:
        if name in self._KNOWN:
            return self._values.get(name)
        raise AttributeError(f"jax.config has no {name!r}", name=name)


config: Config = Config()


def device_put(x: Any, device: Any = None) -> Any:
    """The leaves of the pytree ``x`` as tensors, on ``device`` ("cpu", "cuda") if it is given."""
    wanted = None if device is None else str(device)
    return optree.tree_map(lambda leaf: asarray(leaf) if wanted is None else asarray(leaf).to(wanted), x)


def device_get(x: Any) -> Any:
    """The pytree ``x`` with NumPy arrays in place of its tensors."""
    return optree.tree_map(lambda leaf: np.asarray(leaf.detach().to("cpu")) if isinstance(leaf, Tensor) else leaf, x)


def devices(backend: str | None = None) -> list[str]:
    """The devices: "cuda" for each GPU, or else "cpu"."""
    count = 0 if backend == "cpu" else _cuda.device_count()
    return ["cuda"] * count or ["cpu"]


local_devices: Callable[..., list[str]] = devices


def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


local_device_count: Callable[..., int] = device_count


def default_backend() -> str:
    """Where tensors are made: "cpu"."""
    return "cpu"


def linearize(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``(fun(*primals), f)``: ``f(*tangents)`` is the derivative there in their direction. `jax.jvp` computes each."""
    return fun(*primals), lambda *tangents: jvp(fun, primals, tangents)[1]


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results of ``fun``, as `ShapeDtypeStruct`.

    Arguments are tensors, arrays, or `ShapeDtypeStruct`, for which ``fun`` gets zeros: it runs.
    """

    def made(x: Any) -> Any:
        return asarray(np.zeros(x.shape, x.dtype)) if isinstance(x, ShapeDtypeStruct) else x

    is_struct = lambda x: isinstance(x, ShapeDtypeStruct)  # noqa: E731
    given, named = (optree.tree_map(made, tree, is_leaf=is_struct) for tree in (args, kwargs))
    return optree.tree_map(lambda x: ShapeDtypeStruct(asarray(x).shape, asarray(x).dtype), fun(*given, **named))


def block_until_ready(x: Any) -> Any:
    """``x``: results on the host are complete."""
    return x


def _devices_of(self: Tensor) -> set[str]:
    """The device that the tensor is on, as jax's method gives it."""
    return {str(self.device)}


install({"block_until_ready": block_until_ready, "devices": _devices_of})


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A context that changes nothing: ops are named by their lines here."""
    yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """``fun``: ops are named by their lines here."""
    return fun


def clear_caches() -> None:
    """Do nothing: each compiled function has programs of its own, and ``f.clear()``."""
