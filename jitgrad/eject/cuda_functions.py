"""Functions without rounding of their own, for kernels of ``numba.cuda``, which has few of NumPy's."""

from __future__ import annotations

from jitgrad.eject.vector_math import MathLibrary

_IN_BOTH = frozenset({"minimum", "maximum"})  # numba.cuda has NumPy's, which propagate NaN
_NEEDS = {"rint": ("copysign",), "nextafter": ("copysign",)} | dict.fromkeys(("floor", "ceil", "trunc"), ("rint",))
_WHOLE = {32: 2.0**23, 64: 2.0**52}

_TEXTS = {
    "copysign": '''
def copysign_{kind}(x, sign):
    """``x`` with the sign of ``sign``."""
    return {float}(math.copysign(x, sign))
''',
    "rint": '''
def rint_{kind}(x):
    """The integer nearest ``x``, ties to even: at {whole} and above all floats are integers."""
    size = abs(x)
    return copysign_{kind}((size + {float}({whole})) - {float}({whole}), x) if size < {float}({whole}) else x
''',
    "floor": '''
def floor_{kind}(x):
    """The largest integer that is not above ``x``."""
    near = rint_{kind}(x)
    return near - {float}(1.0) if near > x else near
''',
    "ceil": '''
def ceil_{kind}(x):
    """The smallest integer that is not below ``x``."""
    near = rint_{kind}(x)
    return copysign_{kind}(near + {float}(1.0), x) if near < x else near
''',
    "trunc": '''
def trunc_{kind}(x):
    """``x`` without its fraction."""
    size = abs(x)
    near = rint_{kind}(size)
    return copysign_{kind}(near - {float}(1.0) if near > size else near, x)
''',
    "sqrt": '''
def sqrt_{kind}(x):
    """The square root of ``x``, rounded correctly; NaN below 0."""
    return {float}(math.sqrt(x)) if x >= {float}(0.0) else {float}(np.nan)
''',
    "fmod": '''
def fmod_{kind}(x, y):
    """The remainder of ``x / y`` with the sign of ``x``, exactly."""
    return {float}(math.fmod(x, y)) if abs(x) < np.inf and y != {float}(0.0) else {float}(np.nan)
''',
    "isnan": '''
def isnan_{kind}(x):
    """Whether ``x`` is NaN."""
    return x != x
''',
    "isinf": '''
def isinf_{kind}(x):
    """Whether ``x`` is infinite."""
    return abs(x) == {float}(np.inf)
''',
    "isfinite": '''
def isfinite_{kind}(x):
    """Whether ``x`` is neither infinite nor NaN."""
    return abs(x) < {float}(np.inf)
''',
    "signbit": '''
def signbit_{kind}(x):
    """Whether the sign of ``x`` is set."""
    return {float}(x).view({int}) < 0
''',
    "nextafter": '''
def nextafter_{kind}(x, y):
    """The float next to ``x`` in the direction of ``y``."""
    if x != x or y != y:
        return x + y
    if x == y:
        return y
    if x == {float}(0.0):
        return copysign_{kind}({int}(1).view({float}), y)
    bits = {float}(x).view({int})
    return {int}(bits + 1 if (x < y) == (x > {float}(0.0)) else bits - 1).view({float})
''',
    "fma": '''
def fma_{kind}(a, b, c):
    """``a * b + c``, rounded once."""
    return cuda.fma({float}(a), {float}(b), {float}(c))
''',
}


class CudaMathLibrary(MathLibrary):
    """The functions that a CUDA module needs, in the order of their definitions."""

    def exact(self, name: str, width: int) -> str:
        if name in _IN_BOTH:
            return f"np.{name}"
        for needed in _NEEDS.get(name, ()):
            self.exact(needed, width)
        names = {"kind": f"f{width}", "float": f"np.float{width}", "int": f"np.int{width}", "whole": _WHOLE[width]}
        return self.add_text(f"{name}_f{width}", "\n\n@njit" + _TEXTS[name].format(**names))

    def fused(self, width: int) -> str:
        return self.exact("fma", width)
