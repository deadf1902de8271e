"""Turning short rows into vector lanes and back, for kernel source: transposes of blocks held in vector registers.

==================================  ================================================================================
``rows_to_lanes(tile, p, s, n, m)``  ``tile[j * LANES + k] = p[k * s + j]`` for ``j < n`` and every lane ``k``; lanes
                                     from ``m`` on repeat row ``m - 1``
``lanes_to_rows(p, tile, s, n, m)``  ``p[k * s + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``
==================================  ================================================================================

Elements have four or eight bytes; ``tile`` has room for ``NARROW`` rows of lanes. A square block of W x W elements is
transposed in log2(W) rounds of interleaving register i with register i + W / 2 (the perfect-shuffle transpose;
Stone, "Parallel processing with the perfect shuffle", IEEE Trans. Computers 1971). Import this module only when a
kernel is compiled: it imports numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from jitgrad.backends.intrinsics import intrinsic
from jitgrad.compiler.kernel import LANES

_I1, _I32, _I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_BLOCK_BYTES = 64  # a full AVX-512 vector; narrower machines take several registers for it


def _width(name: str, a: Any, b: Any) -> int:
    """Elements per block row of two pointers to the same dtype."""
    if a != b or not isinstance(a, types.CPointer) or a.dtype.bitwidth not in (32, 64):
        raise TypingError(f"{name}({a}, {b}): takes two pointers to the same dtype of 4 or 8 bytes")
    return _BLOCK_BYTES * 8 // int(a.dtype.bitwidth)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of the block whose rows are given. Each round halves how far apart a column's elements are."""
    width = len(rows)
    low = [x for k in range(width // 2) for x in (k, width + k)]
    high = [x + width // 2 for x in low]
    masks = [ir.Constant(ir.VectorType(_I32, width), order) for order in (low, high)]
    for _ in range(width.bit_length() - 1):
        pairs = zip(rows[: width // 2], rows[width // 2 :], strict=True)
        rows = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return rows


def _suffix(vector: Any) -> str:
    letter = "i" if isinstance(vector.element, ir.IntType) else "f"
    return f"v{vector.count}{letter}{_BLOCK_BYTES * 8 // vector.count}"


def _splat(builder: Any, x: Any, width: int) -> Any:
    vector = ir.VectorType(x.type, width)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), x, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, width), [0] * width)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _columns_left(builder: Any, n: Any, first: Any, width: int) -> Any:
    """Mask of the block's columns that the rows really have."""
    numbers = ir.Constant(ir.VectorType(_I64, width), list(range(width)))
    return builder.icmp_signed("<", numbers, _splat(builder, builder.sub(n, first), width))


def _masked_load(builder: Any, pointer: Any, mask: Any, vector: Any) -> Any:
    kinds = [pointer.type, _I32, mask.type, vector]
    signature = ir.FunctionType(vector, kinds)
    function = builder.module.declare_intrinsic(f"llvm.masked.load.{_suffix(vector)}.p0", (), signature)
    align = ir.Constant(_I32, _BLOCK_BYTES // vector.count)
    return builder.call(function, [pointer, align, mask, ir.Constant(vector, None)])


def _masked_store(builder: Any, x: Any, pointer: Any, mask: Any) -> None:
    kinds = [x.type, pointer.type, _I32, mask.type]
    signature = ir.FunctionType(ir.VoidType(), kinds)
    function = builder.module.declare_intrinsic(f"llvm.masked.store.{_suffix(x.type)}.p0", (), signature)
    builder.call(function, [x, pointer, ir.Constant(_I32, _BLOCK_BYTES // x.type.count), mask])


def _number(value: int) -> Any:
    return ir.Constant(_I64, value)


def _place(builder: Any, pointer: Any, terms: tuple[Any, Any], vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [builder.add(*terms)]), vector.as_pointer())


@intrinsic
def rows_to_lanes(typing: Any, tile: Any, p: Any, stride: Any, n: Any, m: Any) -> Any:
    """``tile[j * LANES + k] = p[min(k, m - 1) * stride + j]`` for ``j < n``."""
    width = _width("rows_to_lanes", tile, p)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile, p, stride, n, m = args
        vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), width)
        last = builder.sub(m, _number(1))
        with cgutils.for_range_slice(builder, _number(0), n, _number(width), _I64) as (j, _):
            mask = _columns_left(builder, n, j, width)
            with cgutils.for_range_slice(builder, _number(0), _number(LANES), _number(width), _I64) as (k, _):
                rows = []
                for i in range(width):
                    row = builder.add(k, _number(i))
                    row = builder.select(builder.icmp_signed("<", row, last), row, last)
                    place = _place(builder, p, (builder.mul(row, stride), j), vector)
                    rows.append(_masked_load(builder, place, mask, vector))
                for i, column in enumerate(_transposed(builder, rows)):
                    start = builder.mul(builder.add(j, _number(i)), _number(LANES))
                    builder.store(column, _place(builder, tile, (start, k), vector), align=_BLOCK_BYTES // width)
        return context.get_dummy_value()

    return types.void(tile, p, types.int64, types.int64, types.int64), build


@intrinsic
def lanes_to_rows(typing: Any, p: Any, tile: Any, stride: Any, n: Any, m: Any) -> Any:
    """``p[k * stride + j] = tile[j * LANES + k]`` for ``j < n`` and ``k < m``."""
    width = _width("lanes_to_rows", p, tile)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        p, tile, stride, n, m = args
        vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), width)
        nothing = ir.Constant(ir.VectorType(_I1, width), None)
        with cgutils.for_range_slice(builder, _number(0), n, _number(width), _I64) as (j, _):
            mask = _columns_left(builder, n, j, width)
            with cgutils.for_range_slice(builder, _number(0), _number(LANES), _number(width), _I64) as (k, _):
                columns = []
                for i in range(width):
                    start = builder.mul(builder.add(j, _number(i)), _number(LANES))
                    place = _place(builder, tile, (start, k), vector)
                    columns.append(builder.load(place, align=_BLOCK_BYTES // width))
                for i, x in enumerate(_transposed(builder, columns)):
                    row = builder.add(k, _number(i))
                    present = builder.select(builder.icmp_signed("<", row, m), mask, nothing)
                    _masked_store(builder, x, _place(builder, p, (builder.mul(row, stride), j), vector), present)
        return context.get_dummy_value()

    return types.void(p, tile, types.int64, types.int64, types.int64), build


NAMES: dict[str, Any] = {f._name: f for f in (rows_to_lanes, lanes_to_rows)}
