"""Ops that NumPy walks through element by element, such as a running sum: by the machine code of compiled programs.

It is found once calls on large arrays come back often, and has the bits of NumPy's function. The module that knows the
kernels is above this one; it registers itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.context import current_interpreter
from jitgrad.core.op import OpDef
from jitgrad.eager.large_arrays import kernels_allowed

# Compiling a kernel takes as long as some thousand small calls; that many elements count as one more call, up to so many.
_USES = 1000
_ELEMENTS = 256
_MOST_COUNTED = 100  # a program with one large array does not wait for a compiler
_LEAST = 1 << 11  # elements of the largest operand, below which NumPy is faster for every op

_other_interpreter = current_interpreter.other
# Of an op, the avals of its operands and its attributes: the function that has the parameters and bits of ``op.eager``, or
# None where that is to compute.
KernelFinder = Callable[[OpDef, Sequence[Aval], Mapping[str, Any]], Callable[..., Any] | None]


class _Registered:
    finder: KernelFinder | None = None


def find_library_kernels_by(finder: KernelFinder) -> None:
    """Let ``finder`` find kernels."""
    _Registered.finder = staticmethod(finder)


class _Uses:
    """How often an op was called with operands of certain dtypes, as a number of small calls."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count: int = 0


@cache
def _uses_of(_op: OpDef, _dtypes: tuple[Dtype, ...]) -> _Uses:
    return _Uses()


def by_library_kernel(
    op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any], function: Callable[..., Any]
) -> Callable[..., Any]:
    """``function``, which computes ``op`` on arrays of ``avals`` by NumPy, or a kernel once calls come back often."""
    if not op.library_kernel or not avals or max([a.size for a in avals]) < _LEAST or any([a.weak for a in avals]):
        return function
    uses = _uses_of(op, tuple([a.dtype for a in avals]))
    weight = 1 + min(max([a.size for a in avals]) // _ELEMENTS, _MOST_COUNTED)
    kernel: Callable[..., Any] | None = None

    def call(*arrays: Any) -> Any:
        nonlocal kernel
        if not kernels_allowed.get():
            return function(*arrays)
        if kernel is None:
            uses.count += weight
            if uses.count < _USES or _Registered.finder is None or _other_interpreter() is not None:
                return function(*arrays)
            kernel = _Registered.finder(op, avals, attrs)
            if kernel is None:
                kernel = function
        return kernel(*arrays) if kernel is function else kernel(*arrays, **attrs)

    return call
