"""The libraries to compare: how each is loaded, set to a number of threads, compiled and waited for."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]


def _as_it_is(out: Any) -> Any:
    return out


def _waiting(synchronize: Callable[[], None]) -> Callable[[Any], Any]:
    """A function that returns its argument when the device has done all work."""

    def wait(out: Any) -> Any:
        synchronize()
        return out

    return wait


@dataclass(frozen=True, slots=True)
class Peer:
    """One library in one mode.

    ``xp`` holds the array functions that workloads use; ``value_and_grad(f, argnums)`` returns
    ``(value, gradients)``; ``grad(f, argnum)`` nests. ``wait`` returns when the results are computed. ``donating``
    compiles a function that may overwrite its first argument, where a library has such an option.
    """

    name: str
    xp: Any
    array: Callable[[np.ndarray[Any, Any]], Any]
    numpy: Callable[[Any], np.ndarray[Any, Any]]
    compile: Callable[[Function], Function]
    value_and_grad: Callable[..., Function] | None = None
    grad: Callable[..., Function] | None = None
    wait: Callable[[Any], Any] = _as_it_is
    donating: Callable[[Function], Function] | None = None

    def arrays(self, tree: Any) -> list[np.ndarray[Any, Any]]:
        """The leaves of a result as NumPy arrays."""
        return [self.numpy(x) for x in leaves(tree)]


class PeerMissing(Exception):
    """A library that is not installed or not usable; the message names it and the reason."""


def tree_map(f: Callable[[Any], Any], tree: Any) -> Any:
    """``f`` of every leaf; containers are tuples, lists and dicts (in the order of their keys, as in JAX)."""
    if isinstance(tree, (tuple, list)):
        return type(tree)(tree_map(f, x) for x in tree)
    if isinstance(tree, dict):
        return {k: tree_map(f, tree[k]) for k in sorted(tree)}
    return f(tree)


def leaves(tree: Any) -> list[Any]:
    """The leaves of nested tuples, lists and dicts, in order."""
    collected: list[Any] = []
    tree_map(collected.append, tree)
    return collected


def _numpy(threads: int) -> Peer:
    from benchmarks.namespaces import numpy_namespace
    from jitgrad.eager.blas import set_blas_threads

    set_blas_threads(threads)
    return Peer("numpy", numpy_namespace(), lambda x: x, np.asarray, lambda f: f)


def _jitgrad(mode: str, threads: int, device: str) -> Peer:
    import jitgrad as jg
    from benchmarks.namespaces import jitgrad_namespace
    from jitgrad.jit.decorator import jit
    from jitgrad.runtime.executor.thread_pool import set_num_threads

    set_num_threads(threads)
    return Peer(
        mode,
        jitgrad_namespace(),
        lambda x: jg.tensor(x, device=device),
        lambda x: x.cpu().numpy() if isinstance(x, jg.Tensor) else np.asarray(x),
        jit if mode == "jitgrad" else lambda f: f,
        lambda f, argnums=0: jg.value_and_grad(f, argnums=argnums),
        lambda f, argnum=0: jg.grad(f, argnums=argnum),
        wait=_waiting(jg.cuda.synchronize) if device == "cuda" else _as_it_is,
        donating=(lambda f: jit(f, donate=0)) if mode == "jitgrad" else None,
    )


def _torch(mode: str, threads: int, device: str) -> Peer:
    import torch

    from benchmarks.namespaces import torch_namespace

    torch.set_num_threads(threads)
    # all workloads share one wrapper function, and torch.compile silently stops compiling a function after eight programs
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 10_000

    def value_and_grad(f: Function, argnums: Any = 0) -> Function:
        flipped = torch.func.grad_and_value(f, argnums=argnums)

        def value_first(*args: Any) -> Any:
            gradients, value = flipped(*args)
            return value, gradients

        return value_first

    compiled = {
        "torch.compile": lambda f: torch.compile(f, dynamic=False),
        "torch.compile.max-autotune": lambda f: torch.compile(f, dynamic=False, mode="max-autotune"),
    }
    return Peer(
        mode,
        torch_namespace(),
        lambda x: torch.from_numpy(np.array(x)).to(device),
        lambda x: x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x),
        # code for each shape, as in the others; by default a second size is compiled to slower, general code
        compiled.get(mode, _as_it_is),
        value_and_grad,
        lambda f, argnum=0: torch.func.grad(f, argnums=argnum),
        _waiting(torch.cuda.synchronize) if device == "cuda" else _as_it_is,
    )


def _jax(threads: int) -> Peer:
    import jax
    import jax.numpy as jnp

    from benchmarks.namespaces import jax_namespace

    jax.config.update("jax_enable_x64", True)
    return Peer(
        "jax",
        jax_namespace(),
        jnp.array,
        np.asarray,
        jax.jit,
        lambda f, argnums=0: jax.value_and_grad(f, argnums=argnums),
        lambda f, argnum=0: jax.grad(f, argnums=argnum),
        jax.block_until_ready,
        lambda f: jax.jit(f, donate_argnums=0),
    )


NAMES = ("jitgrad", "jitgrad.eager", "numpy", "torch", "torch.compile", "torch.compile.max-autotune", "jax")
DEFAULT = ("jitgrad", "jitgrad.eager", "numpy", "torch", "torch.compile", "jax")
REFERENCES = ("torch", "jax", "jitgrad.eager")  # of these, the first that is installed computes the float64 reference


def prepare_threads(threads: int, device: str = "cpu") -> None:
    """Set the environment variables that JAX and PyTorch read when they are loaded."""
    single = "false" if threads == 1 else "true"
    flags = f"--xla_cpu_multi_thread_eigen={single} intra_op_parallelism_threads={threads}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cuda,cpu" if device == "cuda" else "cpu")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)


@contextmanager
def only_cpus(count: int) -> Iterator[None]:
    """Run on ``count`` CPUs at most: XLA starts a thread for each CPU of the process, despite its options."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def load(name: str, threads: int, device: str = "cpu") -> Peer:
    """The peer ``name``; jitgrad and torch compute on ``device``, NumPy on the host, JAX where its platform is.

    Raises:
        PeerMissing: if its library is not installed.
    """
    library = name.split(".", maxsplit=1)[0]
    if name not in NAMES:
        raise PeerMissing(f"there is no peer {name!r}; known: {', '.join(NAMES)}")
    if importlib.util.find_spec(library) is None:
        raise PeerMissing(f"{library} is not installed")
    if library == "jitgrad":
        return _jitgrad(name, threads, device)
    if library == "torch":
        return _torch(name, threads, device)
    return _jax(threads) if library == "jax" else _numpy(threads)


def load_all(names: Sequence[str], threads: int, say: Callable[[str], None], device: str = "cpu") -> list[Peer]:
    """The peers of ``names`` that are installed; ``say`` gets a message for each of the others."""
    peers = []
    for name in names:
        try:
            peers.append(load(name, threads, device))
        except PeerMissing as error:
            say(f"skipped: {error}")
    return peers
