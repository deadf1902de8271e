"""Elementwise functions that NumPy computes in several passes, as one compiled loop once they come back often.

A loop is machine code that rounds as NumPy's functions do, wrapped as a ufunc. So results have the same bits, whichever of
the two computes them. The module that compiles loops is above this one; it registers itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import OpDef
from jitgrad.eager import buffer_pool
from jitgrad.eager.large_arrays import LARGE, kernels_allowed
from jitgrad.eager.numpy_errors import keeps_large_arrays

# Compiling a loop takes as long as some thousand small calls; that many elements count as one more call, up to so many.
_USES = 1000
_ELEMENTS = 256
_MOST_COUNTED = 100  # a program with one large array does not wait for a compiler
_MANY_PASSES = 10  # small calls that take as long as one of a function of tens of passes

# Functions whose bits are NumPy's own: compiled code calls NumPy's loops, as a kernel of ours would round otherwise.
NUMPY_LOOPS: Mapping[str, np.ufunc] = {"exp": np.exp, "log": np.log, "tanh": np.tanh}

_other_interpreter = current_interpreter.other


class Loop:
    """The loop of ``function``, written in elementwise ops on tensors of ``dtypes``.

    ``numbers`` says which operands are 0-d where others are not. ``ufunc`` is None until it is compiled. ``weight`` is the
    number of small calls for which a call of NumPy's functions counts, beside its elements.
    """

    __slots__ = ("dtypes", "function", "name", "numbers", "ufunc", "uses", "weight")

    def __init__(
        self, name: str, function: Callable[..., Any], dtypes: Sequence[Dtype], numbers: Sequence[bool], weight: int = 1
    ) -> None:
        self.weight: int = weight
        self.name: str = name
        self.function: Callable[..., Any] = function
        self.dtypes: tuple[Dtype, ...] = tuple(dtypes)
        self.numbers: tuple[bool, ...] = tuple(numbers)
        self.ufunc: np.ufunc | None = None
        self.uses: int = 0

    def ready(self, elements: int) -> np.ufunc | None:
        """The ufunc for a call with a result of ``elements``; None if NumPy's functions are to compute it."""
        if not kernels_allowed.get():
            return None
        if self.ufunc is None:
            self.uses += self.weight + min(elements // _ELEMENTS, _MOST_COUNTED)
            if self.uses >= _USES and _Registered.maker is not None and _other_interpreter() is None:
                self.uses = 0  # where nothing is to be compiled now, the next try is as far away
                self.ufunc = _Registered.maker(self)
        return self.ufunc


# Compiles a loop, or returns None where nothing is to be compiled.
LoopMaker = Callable[[Loop], np.ufunc | None]


class _Registered:
    maker: LoopMaker | None = None


def make_loops_by(maker: LoopMaker) -> None:
    """Let ``maker`` compile loops."""
    _Registered.maker = staticmethod(maker)


def loop_of(op: OpDef, avals: Sequence[Aval], dtypes: tuple[Dtype, ...]) -> Loop | None:
    """The loop of ``op``, which computes in ``dtypes``, on arrays of ``avals``; None if there is none."""
    if not op.one_loop or any(d.kind not in "fb" or d == np.float16 for d in dtypes):
        return None
    if any(a.dtype != d for a, d in zip(avals, dtypes, strict=True)):
        return None
    numbers = tuple(not a.shape for a in avals)
    return loop_of_op(op, dtypes, (False,) * len(avals) if all(numbers) else numbers)


@cache
def loop_of_op(op: OpDef, dtypes: tuple[Dtype, ...], numbers: tuple[bool, ...]) -> Loop:
    """The loop of ``op`` on operands of ``dtypes``, of which ``numbers`` are 0-d."""
    function = op.one_loop if callable(op.one_loop) else partial(apply_op, op)
    return Loop(op.name, function, dtypes, numbers, _MANY_PASSES if getattr(op.eager, "takes_many_passes", False) else 1)


def by_loop(
    loop: Loop, function: Callable[..., Any], out: Aval, run: Callable[..., Any]
) -> Callable[..., np.ndarray[Any, Any]]:
    """``function`` with a result of ``out``, or ``run(ufunc, *arrays, out=...)`` once there is a loop.

    Where NumPy's memory is not kept, a large result is written to the pool, if it is laid out as NumPy's would be.
    """
    large, elements = out.nbytes >= LARGE and not keeps_large_arrays(), math.prod(out.shape)

    def call(*arrays: Any) -> Any:
        ufunc = loop.ufunc
        if ufunc is None or not kernels_allowed.get():
            ufunc = loop.ready(elements)
            if ufunc is None:
                return function(*arrays)
        if large and all([np.ndim(x) == 0 or x.flags.c_contiguous for x in arrays]):
            return run(ufunc, *arrays, out=buffer_pool.empty_buffer(out.shape, out.dtype))
        return run(ufunc, *arrays, out=...)

    return call
