"""Compares ops on a device with NumPy: results and gradients, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.complex_parts import real
from jitgrad.ops.creation import tensor
from jitgrad.ops.placement import move
from jitgrad.ops.reduce import sum as sum_of
from jitgrad.testing.programs import random_program
from jitgrad.testing.samples import DOMAINS, sample_operands

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]

ULP = 4.0  # of the functions of kernels on a GPU, against NumPy
_SUMMED = 64.0  # ULP of the largest element, for gradients and reductions: their sums have another order
_CHAINED = 1024.0  # the same for programs, whose ops follow each other


def ops_to_check(dtype: Any = np.float32) -> list[OpDef]:
    """The ops of the registry whose operands can be drawn, and that take those of ``dtype``."""
    drawn = [op for op in REGISTRY.values() if op.domain and set(op.domain) <= set(DOMAINS)]
    return [op for op in drawn if op.takes_complex] if np.dtype(dtype).kind == "c" else drawn


def compare_on_device(op: OpDef, compile_: Compile, dtype: Any = np.float32, device: str = "cuda") -> None:
    """Raise AssertionError unless ``op`` gives on ``device`` what it gives on the host.

    Eager, and as a function that ``compile_`` compiles; with the gradients of a weighted sum of its
    results, where there are any.
    """
    rng = np.random.default_rng(7)
    arrays = sample_operands(op, rng, dtype=dtype)
    is_complex = np.dtype(dtype).kind == "c"
    attrs = {name: np.dtype(dtype) if name == "dtype" and is_complex else x for name, x in op.sample_attrs.items()}
    expected = _outcome(op, arrays, attrs, "cpu", lambda f: f)
    for name, compiled in (("eager", _same), ("compiled", compile_)):
        found = _outcome(op, arrays, attrs, device, compiled)
        assert len(found) == len(expected)
        for k, (x, y) in enumerate(zip(found, expected, strict=True)):
            _check_close(f"{op}, {name}, array {k}", x, y)


def compare_program_on_device(seed: int, compile_: Compile, device: str = "cuda") -> None:
    """Raise AssertionError unless the random program ``seed`` and its gradients, compiled by ``compile_``, are on
    ``device`` what they are on the host. Every eighth one also runs op by op."""
    program = random_program(seed)
    arrays = program.operands(np.dtype(("f4", "f8")[seed % 2]))

    def gradients(*xs: Tensor) -> list[Any]:
        leaves = [x.detach().requires_grad_() for x in xs]
        results = program(*leaves)
        total: Any = None
        for part in [sum_of(multiply(y, y)) for y in results]:
            total = part if total is None else total + part
        total.backward()
        return [*results, *[leaf.grad for leaf in leaves if leaf.grad is not None]]

    def run(wrap: Compile, place: str) -> list[Any]:
        outcome = wrap(gradients)(*[tensor(x, device=place) for x in arrays])
        return [move(x.detach(), "cpu").numpy() for x in outcome]

    expected = run(compile_, "cpu")
    ways = [("compiled", compile_), ("eager", _same)] if seed % 8 == 0 else [("compiled", compile_)]
    for name, wrap in ways:
        for k, (x, y) in enumerate(zip(run(wrap, device), expected, strict=True)):
            _check_close(f"random program {seed}, {name}, array {k}", x, y, _CHAINED)


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _outcome(op: OpDef, arrays: Sequence[Any], attrs: dict[str, Any], device: str, compile_: Compile) -> list[Any]:
    """Results of ``op``, and the gradients of floating operands, as ndarrays."""
    floating = [k for k, x in enumerate(arrays) if x.dtype.kind in "fc"]
    inputs = [tensor(x, device=device) for x in arrays]

    def results(*xs: Any) -> tuple[Any, ...]:
        out = apply_op(op, *xs, **attrs)
        return tuple(out) if op.multiple else (out,)

    outs = compile_(results)(*inputs)
    found = [move(out, "cpu").numpy() for out in outs]
    differentiable = [k for k, out in enumerate(outs) if out.dtype.kind in "fc"]
    if op.vjp is None or not floating or not differentiable:
        return found
    weights = [move(tensor(_weights_for(outs[k])), device) for k in differentiable]

    def gradients(weights: list[Tensor], *xs: Any) -> list[Any]:
        leaves = [x.detach().requires_grad_() if k in floating else x for k, x in enumerate(xs)]
        outs = results(*leaves)
        total: Any = None
        for w, k in zip(weights, differentiable, strict=True):
            part = sum_of(real(multiply(outs[k], w)))
            total = part if total is None else total + part
        if not total.requires_grad:
            return []
        total.backward()
        return [leaves[k].grad for k in floating if leaves[k].grad is not None]

    grads = compile_(gradients)(weights, *inputs)
    return [*found, *[move(g, "cpu").numpy() for g in grads if isinstance(g, Tensor)]]


def _weights_for(out: Tensor) -> np.ndarray[Any, Any]:
    """Different factors for all elements, and for both parts of complex ones."""
    steps = np.linspace(0.5, 1.5, max(out.size, 1))[: out.size].reshape(out.shape)
    return (steps - 0.7j * steps if out.dtype.kind == "c" else steps).astype(out.dtype)


def _check_close(what: str, found: Any, expected: Any, summed: float = _SUMMED) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), f"{what}: {found.dtype}{found.shape}"
    if expected.dtype.kind == "c":
        found, expected = (np.stack([x.real, x.imag], -1) for x in (found, expected))
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
        limit = np.maximum(ULP * np.abs(np.spacing(expected)), summed * np.spacing(np.asarray(scale, expected.dtype)))
        good = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (np.abs(found - expected) <= limit)
    assert good.all(), f"{what}: {found[~good][:4]} is not {expected[~good][:4]}"
