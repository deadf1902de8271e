"""Integers per element: greatest common divisors, powers with exponents that are operands, and the exponents of floats.

A thread computes an element. Operands of other shapes are broadcast by their strides; numbers are part of the text. All
arithmetic is that of int64, whose lowest bits are those of every other integer dtype; divisors of uint64 are left to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.cuda_target.device_call import UNSIGNED, CallWriter, DeviceCall
from jitgrad.compiler.lowering.layout import row_major
from jitgrad.compiler.plan import Place
from jitgrad.core.aval import Dtype, Shape, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.device.faults import NEGATIVE_POWER
from jitgrad.ops.integers import EXPONENT, GCD
from jitgrad.ops.transcendental import INTEGER_POW
from jitgrad.runtime.library_call import LibraryCall

_FLOATS = {2: (10, 5), 4: (23, 8), 8: (52, 11)}  # bits of the fraction and of the exponent, by bytes


def find_integers(call: LibraryCall) -> DeviceCall | None:
    """How a kernel computes ``call``; None for other ops and dtypes."""
    places, out = [place for _, place, _, _ in call.reads], call.writes[0][1].aval
    if call.op not in (GCD, INTEGER_POW, EXPONENT) or out.dtype.kind not in "iu" or not out.size:
        return None
    kinds = "f" if call.op is EXPONENT else "biu"
    if any(p.aval.dtype.kind not in kinds for p in places) or (call.op is GCD and out.dtype == "u8"):
        return None
    arrays = [k for k, place in enumerate(places) if place.location is not None]
    axes = _merged(out.shape, [_strides(places[k], out.shape) for k in arrays])
    if call.op is EXPONENT and not arrays:
        return None
    operands = tuple([(p.aval.dtype, None if p.location is not None else int(p.number)) for p in places])
    source = _source(call.op, out.dtype, operands, len(axes))
    words = tuple([word for n, steps in axes for word in (n, *steps)])
    signed = call.op is INTEGER_POW and places[1].aval.dtype.kind == "i"
    return DeviceCall(source, tuple(arrays), words, out.size, fault=NEGATIVE_POWER if signed else None)


_Operand = tuple[Dtype, int | None]  # of an array, or a number


def _strides(place: Place, shape: Shape) -> tuple[int, ...]:
    """The steps between elements along the axes of a result of ``shape``; the operand itself is in order."""
    own = place.aval.shape
    steps = [0 if n == 1 else step for n, step in zip(own, row_major(own), strict=True)]
    return (*[0] * (len(shape) - len(own)), *steps)


def _merged(shape: Shape, strides: Sequence[Sequence[int]]) -> list[tuple[int, tuple[int, ...]]]:
    """Lengths of axes with the steps of all operands; neighbouring axes that are one for each of them are one."""
    axes: list[tuple[int, tuple[int, ...]]] = []
    for k, n in enumerate(shape):
        if n == 1:
            continue
        steps = tuple([s[k] for s in strides])
        if axes and axes[-1][1] == tuple([n * s for s in steps]):
            n *= axes.pop()[0]
        axes.append((n, steps))
    return axes


@lru_cache(maxsize=256)
def _source(op: OpDef, result: Dtype, operands: tuple[_Operand, ...], axes: int) -> Source:
    arrays = [k for k, (_, number) in enumerate(operands) if number is None]
    pointers = {"y0": _memory(result), **{f"x{k}": _memory(operands[k][0]) for k in arrays}}
    words = [word for a in range(axes) for word in (f"n{a}", *[f"s{a}_{k}" for k in arrays])]
    signed = op is INTEGER_POW and operands[1][0].kind == "i"
    writer = CallWriter(pointers, words, checks_values=signed)
    with writer as out:
        out.line("rest = t")
        for k in arrays:
            out.line(f"at{k} = to_i64(0)")
        for a in reversed(range(axes)):
            for k in arrays:
                out.line(f"at{k} = at{k} + rest % n{a} * s{a}_{k}")
            out.line(f"rest = rest // n{a}")
        for k, (_, number) in enumerate(operands):
            out.line(f"v{k} = to_i64({f'x{k}[at{k}]' if number is None else number})")
        _WRITERS[op](out, operands)
        out.line(f"y0[t] = to_{_memory(result)}(found)")
    return writer.source()


def _memory(dtype: Dtype) -> str:
    """How elements are read: floats as the integers that they look like, unsigned ones of 64 bits as signed."""
    if dtype.kind == "f":
        return UNSIGNED[dtype.itemsize]
    return "i64" if dtype.itemsize == 8 else dtype_name(dtype)


def _divisor(out: Emitter, operands: Sequence[_Operand]) -> None:
    """Euclid's algorithm. Only remainders by positive numbers: the one by -1 would overflow, and the least number has no
    positive one.

    G. Lame, 1844: of consecutive Fibonacci numbers it takes the most steps, of those of n bits less than 1.5 n.
    """
    bits = 8 * max(dtype.itemsize for dtype, _ in operands)
    with out.block(f"for k in range({3 * bits // 2}):"), out.block("if v1 != 0:"):
        out.line("size = select(v1 < 0, 0 - v1, v1)")
        out.line("left = select(size > 0, v0 % select(size > 0, size, 1), select(v0 == v1, 0, v0))")
        out.line("v0 = v1")
        out.line("v1 = left")
    out.line("found = select(v0 < 0, 0 - v0, v0)")


def _power(out: Emitter, operands: Sequence[_Operand]) -> None:
    """The product of the squares that the bits of the exponent choose."""
    if operands[1][0].kind == "i":
        with out.block("if v1 < 0:"):
            out.line("faults[thread()] = number")
    out.line("found = to_i64(1)")
    with out.block(f"for k in range({8 * operands[1][0].itemsize}):"):
        out.line("found = select(((v1 >> k) & 1) != 0, found * v0, found)")
        out.line("v0 = v0 * v0")


def _exponent(out: Emitter, operands: Sequence[_Operand]) -> None:
    """The biased exponent; of subnormal numbers the place of their highest bit, and 0 of zero, infinity and NaN."""
    fraction, width = _FLOATS[operands[0][0].itemsize]
    bias, most = (1 << width - 1) - 1, (1 << width) - 1
    out.line(f"field = (v0 >> {fraction}) & {most}")
    out.line(f"found = select(field == {most}, 0, field - {bias - 1})")
    with out.block("if field == 0:"):
        out.line("found = to_i64(0)")
        with out.block(f"for k in range({fraction}):"):
            out.line(f"found = select(((v0 >> k) & 1) != 0, k - {bias + fraction - 2}, found)")


_WRITERS = {GCD: _divisor, INTEGER_POW: _power, EXPONENT: _exponent}
