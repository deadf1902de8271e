"""The parts of complex numbers, their conjugates, and complex numbers made of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, complex_dtype_of, float_dtype_for, promote, real_dtype_of
from jitgrad.core.dispatch import aval_of
from jitgrad.core.number_range import refusal_of_complex
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import CONJ, add, negative, positive, square
from jitgrad.ops.comparison import where
from jitgrad.ops.operand import Operand, apply, dtype_of

_SINGLE = np.dtype(np.float32)


def _parts_dtypes(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    """A complex operand, and a result in the dtype of its parts."""
    dtype = complex_dtype_of(avals[0].dtype)
    return (dtype,), real_dtype_of(dtype)


def _whole_dtypes(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    """Two parts in their common float dtype, and a complex result; float16 is too short for NumPy's."""
    dtype = float_dtype_for(promote(*avals))
    part = dtype if dtype.itemsize > 2 else _SINGLE
    return (part, part), complex_dtype_of(part)


def _of_parts(re: np.ndarray[Any, Any], im: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), complex_dtype_of(re.dtype))
    out.real, out.imag = re, im
    return out


# Gradients of vjps are those of the bilinear product, dL = Re(g dz): docs/internals/complex.md.
REAL = define_elementwise(
    "real(x)",
    scalar=None,
    eager=np.real,
    dtypes=_parts_dtypes,
    vjp=(lambda g, _out, _x: g,),
    views=True,
    domain=("complex",),
    takes_complex=True,
)
IMAG = define_elementwise(
    "imag(x)",
    scalar=None,
    eager=np.imag,
    dtypes=_parts_dtypes,
    vjp=(lambda g, _out, _x: apply(COMPLEX, 0.0, negative(g)),),
    views=True,
    domain=("complex",),
    takes_complex=True,
)
COMPLEX: OpDef = define_elementwise(
    "complex(re, im)",
    scalar=None,
    eager=_of_parts,
    dtypes=_whole_dtypes,
    vjp=(lambda g, _out, _re, _im: apply(REAL, g), lambda g, _out, _re, _im: negative(apply(IMAG, g))),
    domain=("real", "real"),
)


def is_complex(x: Any) -> bool:
    """Whether ``x`` has a complex dtype."""
    dtype = dtype_of(x)
    return dtype is not None and dtype.kind == "c"


def refuse_complex(what: str, x: Operand) -> None:
    """Raise DtypeError if ``x`` is complex, of which the function ``what`` would compute something else than meant."""
    if is_complex(x):
        raise refusal_of_complex(what, aval_of(CONJ, x))


def real(x: Operand) -> Tensor:
    """The real part, a view of a complex ``x``; a real tensor is its own."""
    if is_complex(x):
        return apply(REAL, x)
    return x if isinstance(x, Tensor) else positive(x)


def imag(x: Operand) -> Tensor:
    """The imaginary part, a view of a complex ``x``; of a real one zeros."""
    return apply(IMAG, x) if is_complex(x) else where(False, x, 0)


def conj(x: Operand) -> Tensor:
    """The complex conjugate; of a real ``x`` its elements."""
    return apply(CONJ, x) if is_complex(x) else positive(x)


def squared_size(x: Operand) -> Tensor:
    """``|x|**2``, real: the sum of the squares of the parts."""
    return add(square(real(x)), square(imag(x))) if is_complex(x) else square(x)


def complex(real: Operand, imag: Operand) -> Tensor:
    """``real + 1j * imag`` of two real operands: complex64 for floats of up to 32 bits, else complex128.

    Infinite and NaN parts stay by themselves, where the arithmetic of the formula would mix them.

    Raises:
        DtypeError: an operand is complex. ShapeError: the shapes do not broadcast.
    """
    return apply(COMPLEX, real, imag)
