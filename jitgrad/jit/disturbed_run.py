"""Runs an op with its rounding replaced by a random one that is several times as large."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.errors import MatrixError
from jitgrad.core.ir import TraceNode
from jitgrad.core.long_sums import sequential_terms
from jitgrad.core.op import Kind, OpDef, parsed_scalar
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.eager.float16 import HALF, is_exact
from jitgrad.eager.run import run_eagerly
from jitgrad.eager.scalar_eval import blockwise, evaluate_with, scalar_functions
from jitgrad.jit.complex_pairs import as_pairs
from jitgrad.jit.rounding_noise import BLOCK, has_subnormals, is_short, limits, mixed, random_factors, random_noise
from jitgrad.ops.fourier import TRANSFORMS
from jitgrad.ops.lu import LU
from jitgrad.runtime.library.small_systems import SYSTEMS
from jitgrad.vecmath import FUNCTIONS

AMPLITUDE = 8.0  # disturbances in units of half an ULP: enough to cross ties that roundings may cross
FUNCTION_FACTOR = 2.0  # vectorised functions are within two ULP, not one half
_STRIDE = 61  # of the elements that a partial disturbance looks at, to know what the others are
_ELIMINATIONS = (*SYSTEMS, LU)
_EXACT_FUNCTIONS = frozenset("abs sign minimum maximum floor ceil trunc rint copysign isnan isinf isfinite signbit".split())


class Disturbance:
    """Random relative changes of float results, of up to ``amplitude`` half ULP.

    ``measure_drift``: sums are also changed by what the order of NumPy's additions costs, which
    needs a second sum in a wider dtype and one term by term.
    ``systematic``: an op is disturbed alike wherever it stands. Functions err alike at like operands,
    so that in an iteration near its limit errors add up which independent ones would cancel.
    ``fast``: small numbers and exact ones are looked for in some elements only.
    """

    def __init__(
        self,
        seed: int,
        *,
        measure_drift: bool = False,
        amplitude: float = AMPLITUDE,
        fast: bool = False,
        systematic: bool = False,
    ) -> None:
        self._seed, self._state = seed, mixed(seed)
        self._systematic = systematic
        self.measure_drift = measure_drift
        self.amplitude = amplitude
        self.fast = fast

    def run(self, node: TraceNode, arrays: list[Any], attrs: Mapping[str, Any]) -> Any:
        """The result of ``node`` on ``arrays``, rounded at random."""
        return run_disturbed(node, arrays, attrs, self)

    def start(self, op: OpDef) -> None:
        """Draw for ``op`` from now on."""
        if self._systematic:
            self._state = mixed(self._seed + crc32(op.name.encode()))

    def _offset(self, end: int) -> int:
        """A random number below ``end``."""
        self._state = mixed(self._state)
        return (self._state >> 32) % end

    def draw(self, size: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """``size`` random numbers between -1 and 1."""
        noise = random_noise(dtype)
        if size <= BLOCK:
            start = self._offset(noise.size - size)
            return noise[start : start + size]
        return np.concatenate([self.draw(min(BLOCK, size - k), dtype) for k in range(0, size, BLOCK)])

    def moved(self, x: Any, factor: float = 1.0, *, exact_if_short: bool = False) -> Any:
        """``x`` with each element moved by up to ``factor * amplitude`` roundings.

        ``exact_if_short``: a number with few significant bits was not rounded, and stays.
        """
        x = np.asarray(x)
        if x.dtype.kind == "c":
            return self.moved(as_pairs(x), factor).view(x.dtype)[..., 0]
        if x.dtype.kind != "f" or not x.size:
            return x
        if x.size <= BLOCK and not self.fast:
            return self._moved_block(x.reshape(-1), factor * self.amplitude, exact_if_short).reshape(x.shape)
        flat = np.ascontiguousarray(x).reshape(-1)
        out = empty_buffer(flat.shape, flat.dtype)
        with np.errstate(all="ignore"):
            if self.fast and not has_subnormals(flat[::_STRIDE]):
                self._move_fast(flat, out, factor * self.amplitude, exact_if_short)
                return out.reshape(x.shape)
            for k in range(0, flat.size, BLOCK):  # whose temporaries stay in the cache
                out[k : k + BLOCK] = self._moved_block(flat[k : k + BLOCK], factor * self.amplitude, exact_if_short)
        return out.reshape(x.shape)

    def _move_fast(self, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], roundings: float, exact_if_short: bool) -> None:
        """`_move` of normal numbers, in one pass."""
        factors = random_factors(x.dtype, roundings)
        exact_if_short = exact_if_short and bool(is_short(x[::_STRIDE]).any())
        for k in range(0, x.size, 2 * BLOCK):
            block, moved = x[k : k + 2 * BLOCK], out[k : k + 2 * BLOCK]
            start = self._offset(factors.size - block.size)
            np.multiply(block, factors[start : start + block.size], out=moved)
            if exact_if_short:
                np.copyto(moved, block, where=is_short(block))

    def _moved_block(self, x: np.ndarray[Any, Any], roundings: float, exact_if_short: bool) -> np.ndarray[Any, Any]:
        half_ulp, least, subnormal = limits(x.dtype)
        share = self.draw(x.size, x.dtype)
        out: np.ndarray[Any, Any] = share * x.dtype.type(roundings * half_ulp)
        out *= x
        out += x
        size = np.abs(x)
        if size.min() < least:
            tiny = (size < least) & (x != 0)
            out[tiny] += (share[tiny] * roundings) * subnormal
        if exact_if_short:
            np.copyto(out, x, where=is_short(x))
        return out

    def moved_by(self, x: Any, sizes: Any) -> Any:
        """``x`` with each element moved by up to ``sizes``, of complex ones each part."""
        x = np.asarray(x)
        if x.dtype.kind == "c":
            return self.moved_by(as_pairs(x), np.asarray(sizes)[..., None]).view(x.dtype)[..., 0]
        with np.errstate(all="ignore"):
            return np.asarray(x + self.draw(x.size, x.dtype).reshape(x.shape) * sizes, x.dtype)


def is_large(node: TraceNode) -> bool:
    """Whether ``node`` takes longer to run than to start."""
    return any([atom.aval.size > BLOCK for atom in (*node.outs, *node.ins)])


class PartialDisturbance:
    """Disturbances at little more than the cost of eager execution.

    Small results are disturbed whole. Of the large ones, a random ``share`` is, and the more strongly
    the smaller that is, so that the root mean square of what it does is the same; elementwise ones
    are in any case at the ``positions`` for their size: where the elements are that are examined.
    Of large arrays' reductions, ``share_of_sums`` is disturbed.
    """

    def __init__(
        self,
        seed: int,
        share: float,
        positions: Mapping[int, np.ndarray[Any, Any]],
        *,
        share_of_sums: float = 1.0,
        systematic: bool = False,
    ) -> None:
        self._share, self._share_of_sums, self._positions = share, share_of_sums, positions
        self._random = np.random.default_rng(seed)
        self._whole = Disturbance(seed, systematic=systematic)
        self._of_sums, self._strong = (
            Disturbance(seed, amplitude=AMPLITUDE / math.sqrt(x), fast=True, systematic=systematic)
            for x in (share_of_sums, share)
        )

    def run(self, node: TraceNode, arrays: list[Any], attrs: Mapping[str, Any]) -> Any:
        """The result of ``node`` on ``arrays``, perhaps or partly rounded at random."""
        if not is_large(node):
            return run_disturbed(node, arrays, attrs, self._whole)
        chosen = self._random.random()
        if node.op.kind is Kind.REDUCE:
            return run_disturbed(node, arrays, attrs, self._of_sums if chosen < self._share_of_sums else None)
        if chosen < self._share:
            return run_disturbed(node, arrays, attrs, self._strong)
        result = run_disturbed(node, arrays, attrs, None)
        if node.op.kind is Kind.ELEMENTWISE and node.op.function is None and result.dtype.kind == "f":
            self._move_at(node, arrays, attrs, result)
        return result

    def _move_at(self, node: TraceNode, arrays: list[Any], attrs: Mapping[str, Any], result: np.ndarray[Any, Any]) -> None:
        positions = self._positions.get(result.size)
        if positions is None or not result.flags.c_contiguous or any(np.may_share_memory(result, x) for x in arrays):
            return
        index = np.unravel_index(positions, result.shape)
        some = [np.broadcast_to(x, result.shape)[index] if np.ndim(x) else x for x in arrays]
        avals = [replace(atom.aval, shape=np.shape(x)) for atom, x in zip(node.ins, some, strict=True)]
        self._whole.start(node.op)
        with np.errstate(all="ignore"):
            result[index] = _elementwise(node.op, some, avals, attrs, self._whole)


# --- ops -------------------------------------------------------------------------------------------


@cache
def _is_arithmetic(scalar: str) -> bool:
    """Whether the expression is one operator, or one square root: such results are rounded once."""
    tree = parsed_scalar(scalar)
    parts: list[ast.expr] = []
    if isinstance(tree, ast.BinOp):
        parts = [tree.left, tree.right]
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "sqrt":
        parts = list(tree.args)
    return bool(parts) and all(isinstance(p, (ast.Name, ast.Constant)) for p in parts)


@cache
def _is_one_function(scalar: str) -> bool:
    tree = parsed_scalar(scalar)
    return isinstance(tree, ast.Call) and all(isinstance(p, ast.Name) for p in tree.args)


def _elementwise(op: OpDef, arrays: list[Any], avals: list[Aval], attrs: Mapping[str, Any], d: Disturbance) -> Any:
    if op.scalar is None or op.function is not None:  # a user's function may decide by its operands
        return d.moved(run_eagerly(op, [_moved_operand(x, d) for x in arrays], avals, attrs), FUNCTION_FACTOR)
    if is_exact(op.scalar):
        return run_eagerly(op, arrays, avals, attrs)
    if _is_arithmetic(op.scalar):
        return d.moved(run_eagerly(op, arrays, avals, attrs), exact_if_short=True)
    result = None
    if not _is_one_function(op.scalar) and not any(a.weak for a in avals):
        dtypes, out = op.dtypes(avals, **attrs)
        if out.kind == "f" and HALF not in dtypes:
            functions = _disturbed_functions(d)
            if set(dtypes) == {out}:
                evaluate = blockwise(lambda *xs: evaluate_with(functions, op, xs, attrs))
                result = evaluate(*[np.asarray(x, out) for x in arrays])
            else:
                result = evaluate_with(functions, op, arrays, attrs)
    if result is None:
        result = run_eagerly(op, arrays, avals, attrs)
    return d.moved(result, FUNCTION_FACTOR)


def _moved_operand(x: Any, d: Disturbance) -> Any:
    return d.moved(x) if isinstance(x, (np.ndarray, np.generic)) and np.asarray(x).dtype.kind == "f" else x


def _disturbed_functions(d: Disturbance) -> Mapping[str, Any]:
    """The functions that scalar expressions call, with disturbed results."""

    def disturbed(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: d.moved(function(*xs), FUNCTION_FACTOR)

    return {
        name: disturbed(f) if name in FUNCTIONS and name not in _EXACT_FUNCTIONS else f
        for name, f in scalar_functions().items()
    }


def _reduction(op: OpDef, x: Any, attrs: Mapping[str, Any], result: Any, d: Disturbance) -> Any:
    """A sum or product in another order: its partial results are rounded relative to all terms."""
    if result.dtype.kind != "f" or op.monoid is None or not op.monoid.on_floats:
        return result
    if op.monoid.ufunc is not np.add:
        terms = max(1, x.size // max(1, result.size))
        return d.moved(result, float(np.sqrt(terms)))
    sums = np.asarray(_absolute_sums(op, x, attrs, d.fast), np.float64)
    if is_short(np.ravel(result)).all() and is_short(np.ravel(x)).all() and _adds_exactly(x, sums):
        return result
    axes = attrs["axis"]
    in_sequence = sequential_terms(attrs.get("shape", x.shape), axes)  # kernels add as many, or fewer
    rounding = d.amplitude * float(np.finfo(result.dtype).eps) / 2 * max(1.0, math.sqrt(in_sequence) / 4)
    moved = d.moved_by(result, rounding * sums)
    if d.measure_drift:
        wide = np.longdouble if result.dtype.itemsize == 8 else np.float64
        exact = np.add.reduce(x, axis=axes, dtype=wide)
        drift = np.maximum(np.abs(result - exact), np.abs(_in_one_row(x, axes) - exact))
        moved = np.asarray(moved + np.sign(moved - result) * 2 * drift.astype(np.float64), result.dtype)
    return moved


def _adds_exactly(x: np.ndarray[Any, Any], absolute_sums: np.ndarray[Any, Any]) -> bool:
    """Whether no order of adding the terms rounds: all are multiples of what the last digit of a sum stands for."""
    largest = float(np.max(absolute_sums, initial=0.0))
    if not 0.0 < largest < np.inf:
        return True
    unit = max(2.0 ** (math.ceil(math.log2(largest)) + math.log2(np.finfo(x.dtype).eps) - 1), 5e-324)
    multiples = np.asarray(x, np.float64) / unit
    return bool(np.array_equal(multiples, np.rint(multiples)))


def _in_one_row(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The sums of ``x`` along ``axes``, added one term after the other."""
    if not x.size:
        return np.asarray(np.add.reduce(x, axis=axes))
    kept = [n for k, n in enumerate(x.shape) if k not in axes]
    terms = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(*kept, -1)
    return np.asarray(np.add.accumulate(terms, axis=-1, dtype=x.dtype)[..., -1])


def _absolute_sums(op: OpDef, x: np.ndarray[Any, Any], attrs: Mapping[str, Any], fast: bool) -> Any:
    """The sums of |x|; ``fast``: estimated from every eighth term, if there are many."""
    axis = max(attrs["axis"], default=0)
    step = 8 if fast and x.ndim and x.shape[axis] >= 128 else 1
    part = x[(slice(None),) * axis + (slice(None, None, step),)] if step > 1 else x
    return op.eager(np.abs(part, out=empty_buffer(part.shape, part.dtype)), **attrs) * x.dtype.type(step)


def _product(x: Any, y: Any, result: Any, d: Disturbance) -> Any:
    """A matrix product: rounded relative to the norms of its rows and columns."""
    if result.dtype.kind not in "fc":
        return result
    wide = np.dtype(np.float32) if result.dtype == HALF else result.dtype
    rows, columns = np.sqrt(_squares(x, -1, wide)), np.sqrt(_squares(y, -2 if y.ndim > 1 else -1, wide))
    if x.ndim > 1 and y.ndim > 1:
        rows, columns = rows[..., :, None], columns[..., None, :]
    rounding = d.amplitude * float(np.finfo(result.dtype).eps) / 2
    return d.moved_by(result, rounding * max(1.0, np.sqrt(x.shape[-1]) / 4) * (rows * columns))


def _squares(x: np.ndarray[Any, Any], axis: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The sums of squares along the last axis, or the one before."""
    terms = np.abs(x) if dtype.kind == "c" else np.asarray(x, dtype)
    return np.asarray(np.einsum("...i,...i->..." if axis == -1 else "...ij,...ij->...j", terms, terms))


def _transform(result: Any, attrs: Mapping[str, Any], d: Disturbance) -> Any:
    """A Fourier transform: rounded relative to the root mean square of each line of results."""
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    pairs = as_pairs(result) if result.dtype.kind == "c" else result[..., None]
    size = np.sqrt(np.mean(np.square(pairs), axis=(*axes, -1), keepdims=True, dtype=np.float64))
    rounding = d.amplitude * float(np.finfo(pairs.dtype).eps) / 2
    moved = d.moved_by(pairs, rounding * np.broadcast_to(size, pairs.shape))
    return (moved.view(result.dtype) if result.dtype.kind == "c" else moved)[..., 0]


def _system(op: OpDef, arrays: list[Any], attrs: Mapping[str, Any], result: Any, d: Disturbance) -> Any:
    """The results for a matrix that is off by what elimination costs: roundings of the largest elements of its columns.

    Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms" (2002), theorems 9.3 and 10.3.
    """
    x, *others = arrays
    if x.dtype.kind not in "fc" or not x.size:
        return result
    rounding = d.amplitude * float(np.finfo(x.dtype).eps) / 2 * max(1.0, math.sqrt(x.shape[-1]) / 2)
    try:
        moved = op.eager(d.moved_by(x, rounding * np.max(np.abs(x), axis=-2, keepdims=True)), *others, **attrs)
    except MatrixError:  # on the edge of what has a result
        return result
    return tuple([r if r.dtype.kind == "i" else d.moved(r) for r in moved]) if op.multiple else d.moved(moved)


def run_disturbed(node: TraceNode, arrays: list[Any], attrs: Mapping[str, Any], d: Disturbance | None) -> Any:
    """The result of ``node`` on ``arrays``, rounded at random."""
    op, avals = node.op, [atom.aval for atom in node.ins]
    if d is not None:
        d.start(op)
    with np.errstate(all="ignore"):
        if d is not None and op.kind is Kind.ELEMENTWISE:
            return _elementwise(op, arrays, avals, attrs, d)
        result = run_eagerly(op, arrays, avals, attrs)
        if d is None:
            return result
        if op.kind is Kind.REDUCE:
            return _reduction(op, np.asarray(arrays[0]), attrs, result, d)
        if op.contraction:
            return _product(arrays[0], arrays[1], result, d)
        if op in TRANSFORMS:
            return _transform(result, attrs, d)
        if op in _ELIMINATIONS:
            return _system(op, arrays, attrs, result, d)
        return result  # movement, and sums in a fixed order
