"""Elementwise ops on complex numbers as ops on their parts, by the formulas of NumPy's loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import Dtype
from jitgrad.core.ir import Atom, Literal
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.ops.arithmetic import CONJ
from jitgrad.ops.complex_parts import IMAG, REAL

ComplexParts = tuple[Atom, Atom]  # real and imaginary
_ZERO, _ONE, _HALF, _TWO = Literal(0.0), Literal(1.0), Literal(0.5), Literal(2.0)


@dataclass(frozen=True, slots=True)
class Formulas:
    """Emits real ops to ``new``; ``dtype`` is that of the parts."""

    new: Rewriter
    dtype: Dtype

    def __call__(self, name: str, *ins: Atom) -> Atom:
        """The result of the real op ``name``; numbers are of the dtype of the parts."""
        return self.new.emit(REGISTRY[name], *[self.typed(atom) for atom in ins])

    def typed(self, atom: Atom) -> Atom:
        is_weak = isinstance(atom, Literal) and atom.dtype is None
        return replace(atom, dtype=self.dtype) if is_weak else atom  # type: ignore[arg-type]

    def truth(self, x: ComplexParts) -> Atom:
        """Whether a number is not zero."""
        return self("logical_or", self("not_equal", x[0], _ZERO), self("not_equal", x[1], _ZERO))


Formula = Callable[..., ComplexParts | Atom]  # (formulas, parts of each operand) -> parts of the result, or the real result


def _on_parts(name: str) -> Formula:
    """The op of that name on both parts."""

    def formula(f: Formulas, *xs: ComplexParts) -> ComplexParts:
        return f(name, *[x[0] for x in xs]), f(name, *[x[1] for x in xs])

    return formula


def _of_both(name: str, combine: str) -> Formula:
    """The results of a predicate on both parts, combined."""

    def formula(f: Formulas, *xs: ComplexParts) -> Atom:
        return f(combine, f(name, *[x[0] for x in xs]), f(name, *[x[1] for x in xs]))

    return formula


def _logical(name: str) -> Formula:
    return lambda f, *xs: f(name, *[f.truth(x) for x in xs])


# --- arithmetic --------------------------------------------------------------------------------------------------


def _product(f: Formulas, x: ComplexParts, y: ComplexParts) -> ComplexParts:
    real = f("subtract", f("multiply", x[0], y[0]), f("multiply", x[1], y[1]))
    return real, f("add", f("multiply", x[0], y[1]), f("multiply", x[1], y[0]))


def _quotient(f: Formulas, x: ComplexParts, y: ComplexParts) -> ComplexParts:
    """R. L. Smith, "Algorithm 116: complex division", 1962: scaled by the larger part of ``y``, so that nothing overflows.

    Of a ``y`` of zero NumPy divides both parts by ``|0|``.
    """
    sizes = f("abs", y[0]), f("abs", y[1])
    first = f("greater_equal", *sizes)
    large, small = f("where", first, *y), f("where", first, y[1], y[0])
    ratio = f("divide", small, large)
    scale = f("divide", _ONE, f("add", large, f("multiply", small, ratio)))
    tilted = [f("multiply", part, ratio) for part in x]
    real = f("where", first, f("add", x[0], tilted[1]), f("add", tilted[0], x[1]))
    imaginary = f("where", first, f("subtract", x[1], tilted[0]), f("subtract", tilted[1], x[0]))
    zero = f("logical_and", first, f("equal", sizes[0], _ZERO))
    return (
        f("where", zero, f("divide", x[0], sizes[0]), f("multiply", real, scale)),
        f("where", zero, f("divide", x[1], sizes[0]), f("multiply", imaginary, scale)),
    )


def _sign(f: Formulas, x: ComplexParts) -> ComplexParts:
    """``x / |x|``; 0 of zero. Beside an infinite part a finite one is nothing."""
    size = f("hypot", *x)
    infinite, zero = f("isinf", size), f("equal", size, _ZERO)
    length = f("where", f("logical_or", infinite, zero), _ONE, size)
    both = f("logical_and", f("isinf", x[0]), f("isinf", x[1]))

    def part(p: Atom) -> Atom:
        unit = f("where", f("isinf", p), f("copysign", _ONE, p), _ZERO)
        limit = f("where", both, Literal(math.nan), unit)
        return f("divide", f("where", infinite, limit, p), length)

    return part(x[0]), part(x[1])


# --- functions ---------------------------------------------------------------------------------------------------


_STEP = 16.0  # of the exponent by which a factor that overflows alone is divided


def _too_high(f: Formulas, exponent: Atom) -> Atom:
    """Whether ``e**exponent`` may overflow, though its product with a sine does not."""
    return f("greater", exponent, Literal(math.log(float(np.finfo(f.dtype).max)) - 4.0))


def _angle(f: Formulas, angle: Atom, exponent: Atom) -> Atom:
    """``angle``; zero if it says nothing beside an infinite ``exponent``, of which a result then has no direction.

    So C99 has it, annex G.6: ``exp(-inf + i inf)`` is 0, ``exp(inf + i inf)`` has an infinite real part.
    """
    lost = f("logical_and", f("isinf", exponent), f("logical_not", f("isfinite", angle)))
    return f("where", lost, f("copysign", _ZERO, angle), angle)


def _exp(f: Formulas, x: ComplexParts) -> ComplexParts:
    """``e**re * (cos im, sin im)``; where ``e**re`` alone overflows, by two factors."""
    high, angle = _too_high(f, x[0]), _angle(f, x[1], x[0])
    size = f("exp", f("subtract", x[0], f("where", high, Literal(_STEP), _ZERO)))
    factor = f("where", high, Literal(math.exp(_STEP)), _ONE)
    real = f("multiply", f("multiply", size, f("cos", angle)), factor)
    turned = f("multiply", f("multiply", size, f("sin", angle)), factor)
    return real, f("where", f("equal", x[1], _ZERO), x[1], turned)


def _log(f: Formulas, x: ComplexParts) -> ComplexParts:
    """``(log |x|, angle)``: near the unit circle by ``log1p`` of ``|x|**2 - 1``, without cancellation."""
    sizes = f("abs", x[0]), f("abs", x[1])
    large, small = f("maximum", *sizes), f("minimum", *sizes)
    huge = f("greater", large, Literal(float(np.finfo(f.dtype).max) / 4))
    shrink = f("where", huge, Literal(0.25), _ONE)
    size = f("hypot", *[f("multiply", part, shrink) for part in sizes])
    far = f("add", f("log", size), f("where", huge, Literal(math.log(4.0)), _ZERO))
    near = f("logical_and", f("greater", size, Literal(0.7)), f("less", size, Literal(1.4)))
    beyond = f("multiply", f("subtract", large, _ONE), f("add", large, _ONE))
    close = f("multiply", f("log1p", f("add", beyond, f("multiply", small, small))), _HALF)
    return f("where", near, close, far), f("atan2", x[1], x[0])


def _scaled_log(factor: float) -> Formula:
    def formula(f: Formulas, x: ComplexParts) -> ComplexParts:
        real, angle = _log(f, x)
        return f("multiply", real, Literal(factor)), f("multiply", angle, Literal(factor))

    return formula


def _sqrt(f: Formulas, x: ComplexParts) -> ComplexParts:
    """T. E. Hull et al., "Implementing complex elementary functions using exception handling", 1994.

    The larger part of the root is ``sqrt((|re| + |x|) / 2)``, the smaller one ``|im| / 2`` divided by it.
    """
    sizes, limits = (f("abs", x[0]), f("abs", x[1])), np.finfo(f.dtype)
    most = f("maximum", *sizes)
    huge, tiny = f("greater", most, Literal(float(limits.max) / 4)), f("less", most, Literal(float(limits.tiny) * 4))
    scale = f("where", huge, Literal(0.25), f("where", tiny, Literal(2.0**60), _ONE))  # without subnormal numbers
    grow = f("where", huge, _TWO, f("where", tiny, Literal(2.0**-30), _ONE))
    a, b = [f("multiply", size, scale) for size in sizes]
    large = f("sqrt", f("multiply", f("add", a, f("hypot", a, b)), _HALF))
    quotient = f("divide", b, f("multiply", large, _TWO))
    small = f("where", f("equal", large, _ZERO), _ZERO, quotient)
    infinite = f("isinf", x[1])  # both parts are
    large, small = [f("where", infinite, Literal(math.inf), f("multiply", part, grow)) for part in (large, small)]
    right = f("greater_equal", x[0], _ZERO)
    return f("where", right, large, small), f("copysign", f("where", right, small, large), x[1])


def _rsqrt(f: Formulas, x: ComplexParts) -> ComplexParts:
    return _quotient(f, (_ONE, _ZERO), _sqrt(f, x))


def _product_with_zero(f: Formulas, a: Atom, b: Atom) -> Atom:
    """``a * b``, zero if one is, whatever the other: an axis stays on the axis."""
    by_b = f("where", f("equal", b, _ZERO), f("multiply", b, f("copysign", _ONE, a)), f("multiply", a, b))
    return f("where", f("equal", a, _ZERO), f("multiply", a, f("copysign", _ONE, b)), by_b)


def _circular(
    f: Formulas, first: tuple[str, str], second: tuple[str, str], angle: Atom, exponent: Atom
) -> ComplexParts:
    """``sin(x + iy) = sin x cosh y + i cos x sinh y`` and its relatives: pairs of functions of the two parts.

    Where a hyperbolic function alone overflows, it is computed by two factors.
    """
    high = _too_high(f, f("abs", exponent))
    less = f("subtract", exponent, f("where", high, f("copysign", Literal(_STEP), exponent), _ZERO))
    factor = f("where", high, Literal(math.exp(_STEP)), _ONE)
    angles = {"cos": _angle(f, angle, exponent), "sin": angle}  # the other part is NaN then
    parts = [_product_with_zero(f, f(a, angles[a]), f(b, less)) for a, b in (first, second)]
    return f("multiply", parts[0], factor), f("multiply", parts[1], factor)


def _conjugate(f: Formulas, x: ComplexParts) -> ComplexParts:
    return x[0], f("negative", x[1])


_BY_NAME: Mapping[str, Formula] = {
    "add": _on_parts("add"),
    "subtract": _on_parts("subtract"),
    "negative": _on_parts("negative"),
    "multiply": _product,
    "square": lambda f, x: _product(f, x, x),
    "divide": _quotient,
    "reciprocal": lambda f, x: _quotient(f, (_ONE, _ZERO), x),
    "abs": lambda f, x: f("hypot", *x),
    "sign": _sign,
    "equal": _of_both("equal", "logical_and"),
    "not_equal": _of_both("not_equal", "logical_or"),
    "isnan": _of_both("isnan", "logical_or"),
    "isinf": _of_both("isinf", "logical_or"),
    "isfinite": _of_both("isfinite", "logical_and"),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "logical_not": _logical("logical_not"),
    "exp": _exp,
    "log": _log,
    "log2": _scaled_log(1.0 / math.log(2.0)),
    "log10": _scaled_log(1.0 / math.log(10.0)),
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "sin": lambda f, x: _circular(f, ("sin", "cosh"), ("cos", "sinh"), *x),
    "cos": lambda f, x: _conjugate(f, _circular(f, ("cos", "cosh"), ("sin", "sinh"), *x)),
    "sinh": lambda f, x: _circular(f, ("cos", "sinh"), ("sin", "cosh"), *x[::-1]),
    "cosh": lambda f, x: _circular(f, ("cos", "cosh"), ("sin", "sinh"), *x[::-1]),
}

# By op; those whose operands are all converted to one complex dtype.
FORMULAS: Mapping[OpDef, Formula] = {
    **{REGISTRY[name]: formula for name, formula in _BY_NAME.items()},
    CONJ: _conjugate,
    REAL: lambda _f, x: x[0],
    IMAG: lambda _f, x: x[1],
}
