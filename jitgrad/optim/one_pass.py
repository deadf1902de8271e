"""The update of a parameter in one pass over its arrays, by machine code, once it comes back often.

An update of Adam is a dozen elementwise ops. On a large parameter each of them moves whole arrays between memory and
processor. As one program on stretches that fit in the cache (`jitgrad.eager.row_programs`), they read parameter, gradient and
state once, and write them once. The program rounds as NumPy's functions do, so results have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.applied_op import AppliedOp
from jitgrad.autograd.row_groups import RowGroup, grouped
from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.ir import Value
from jitgrad.core.op import Kind
from jitgrad.core.tensor import Tensor
from jitgrad.eager.large_arrays import kernels_allowed
from jitgrad.eager.row_programs import RowCall, RowScope, kernel_of

_STRETCH = 1 << 14  # elements of a call: operands and results stay in the second-level cache
_LEAST = 50_000  # elements of all steps but one: of less, NumPy's calls take less time than slices of all arrays
_FEWEST = 2  # steps that are worth a program: their results are written to other arrays in any case

_Array = np.ndarray[Any, Any]
_Numbers = dict[tuple[int, Dtype], tuple[int, Tensor]]  # by place and dtype: the place, and what stands for the converted number


def in_one_pass(
    steps: Sequence[AppliedOp], written: Mapping[int, Tensor], places: Mapping[int, int], plain: Callable[..., Any]
) -> Callable[..., Any] | None:
    """``plain``, which computes ``steps`` and writes to its arguments, with a program in its place once that is compiled.

    ``written`` has the value that argument k is to have, ``places`` the number of the argument of a value. None if the steps
    are not one program of elements of arrays of one shape.
    """
    numbers: _Numbers = {}
    steps = [_with_converted(step, places, numbers) for step in steps]
    if any([step.op.kind is not Kind.ELEMENTWISE for step in steps]):
        return None
    items = grouped(steps, {id(value._data) for value in written.values()}, _FEWEST)
    if len(items) != 1 or not isinstance(group := items[0], RowGroup):
        return None
    if (len(group.program.steps) - 1) * math.prod(group.size) < _LEAST:
        return None
    if any([value.scope not in (RowScope.ELEMENT, RowScope.NUMBER) for value in group.program.values]):
        return None
    arguments: dict[int, tuple[int, Dtype | None]] = {value: (place, None) for value, place in places.items()}
    arguments |= {id(x._data): (place, x.aval.dtype) for place, x in numbers.values()}
    sources = [arguments.get(id(x._data)) for x in group.operands]
    results = [id(x._data) for x in group.results]
    targets = [results.index(id(value._data)) for value in written.values()]
    if None in sources or sorted(targets) != list(range(len(results))):
        return None
    return _update(group, sources, list(written), targets, plain)  # type: ignore[arg-type]


def _with_converted(step: AppliedOp, places: Mapping[int, int], numbers: _Numbers) -> AppliedOp:
    """``step`` with numbers among its arguments in the dtype in which it computes."""
    op, operands, avals, attrs, out = step
    if op.kind is not Kind.ELEMENTWISE or not any([a.weak for a in avals]):
        return step
    given, looks = [*operands], [*avals]
    for k, dtype in enumerate(op.dtypes(avals, **attrs)[0]):
        x = operands[k]
        if isinstance(x, Tensor) and x.aval.weak and not x.aval.shape and id(x._data) in places:
            place = places[id(x._data)]
            _, given[k] = numbers.setdefault((place, dtype), (place, Tensor(Value(Aval((), dtype)))))
            looks[k] = given[k].aval
    return AppliedOp(op, tuple(given), looks, attrs, out)


def _update(
    group: RowGroup,
    sources: Sequence[tuple[int, Dtype | None]],
    written: Sequence[int],
    targets: Sequence[int],
    plain: Callable[..., Any],
) -> Callable[..., Any]:
    """The function of the arguments: ``sources`` are those of the operands of ``group``, with the dtype that a number is to
    have, and ``targets`` the results that those in ``written`` are to have."""
    kernel, count = kernel_of(group.program), math.prod(group.size)
    elements = [value.scope is RowScope.ELEMENT for value in group.program.values[: len(sources)]]
    dtypes = [x.aval.dtype for x in group.results]
    whole = list(dict.fromkeys([*written, *[k for (k, _), whole in zip(sources, elements, strict=True) if whole]]))
    calls: list[RowCall] = []

    def call(*given: Any) -> Any:
        bind = kernel.ready(count) if kernels_allowed.get() else None
        if bind is None or not all([given[k].flags.c_contiguous for k in written]) or _overlap(given, written, whole):
            return plain(*given)
        if not calls:  # of a whole stretch, and of the rest
            calls.extend([bind(size, 1, group.numbers) for size in (_STRETCH, count % _STRETCH)])
        flat = [*given]
        for k in whole:  # a transposed gradient is copied once, where each op would go through it
            flat[k] = np.ascontiguousarray(given[k]).reshape(-1)
        operands = [flat[k] if dtype is None else np.asarray(flat[k], dtype) for k, dtype in sources]
        for start in range(0, count, _STRETCH):
            size = min(count - start, _STRETCH)
            part = slice(start, start + size)
            results = [np.empty(size, dtype) for dtype in dtypes]
            if not calls[size < _STRETCH](*[x[part] if e else x for x, e in zip(operands, elements, strict=True)], *results):
                assert not start
                return plain(*given)
            for k, j in zip(written, targets, strict=True):
                flat[k][part] = results[j]
        return ()

    return call


def _overlap(given: Sequence[_Array], written: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether arguments that are written may have memory in common with others in ``whole``; those that own theirs have not."""
    if all([given[k].base is None for k in whole]):
        return False
    return any([j != k and np.may_share_memory(given[j], given[k]) for j in written for k in whole])
