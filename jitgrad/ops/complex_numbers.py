"""Angles of complex numbers, numbers of given angles, and arrays of parts."""

from __future__ import annotations

from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import DtypeError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.complex_parts import COMPLEX, REAL, complex, imag, is_complex, real
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import cut, squeeze
from jitgrad.ops.operand import Operand
from jitgrad.ops.trigonometric import atan2, cos, sin


@composed
def angle(x: Operand) -> Tensor:
    """The angle of each number with the positive real axis, in [-pi, pi]; pi for negative real numbers.

    Its gradient at 0 is 0.
    """
    return atan2(imag(x), real(x))


def polar(abs: Operand, angle: Operand) -> Tensor:
    """The complex numbers of absolute value ``abs`` at ``angle`` with the positive real axis."""
    return complex(multiply(abs, cos(angle)), multiply(abs, sin(angle)))


def view_as_real(x: Operand) -> Tensor:
    """Complex ``x`` [...] as its parts [..., 2]: a new tensor, where torch's is a view. Raises DtypeError for a real ``x``."""
    if not is_complex(x):
        raise DtypeError(f"view_as_real of {aval_of(REAL, x)}: only complex tensors have two parts")
    return stack([real(x), imag(x)], -1)


def view_as_complex(x: Operand) -> Tensor:
    """Real ``x`` [..., 2] as complex numbers [...]: a new tensor, where torch's is a view.

    Raises:
        ShapeError: the last axis does not have the length 2. DtypeError: ``x`` is neither float32 nor float64.
    """
    aval = aval_of(COMPLEX, x)
    if not aval.ndim or aval.shape[-1] != 2:
        raise ShapeError(f"view_as_complex of {aval}: the last axis must hold two numbers, the real and the imaginary part")
    if aval.dtype.kind != "f" or aval.dtype.itemsize < 4:
        raise DtypeError(f"view_as_complex of {aval}: the parts must be float32 or float64; convert them with astype")
    last = aval.ndim - 1
    re, im = (squeeze(cut(x, last, k, k + 1), last) for k in range(2))
    return complex(re, im)
