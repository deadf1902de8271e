"""Small functions that kernels of an ejected module call: sums, float16, casts, integers, random bits; and on CUDA what
the threads of a block reduce together."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS

_HALF = {
    "half_to_float": '''
@njit
def half_to_float(bits):
    """The float32 that equals the float16 of these 16 bits."""
    sign = np.int32(np.int32(bits & 0x8000) << 16)
    exponent = np.int32(np.int32(bits >> 10) & 0x1F)
    fraction = np.int32(bits & 0x3FF)
    if exponent == 0:  # zero or subnormal
        small = np.float32(fraction) * np.float32(5.9604645e-08)
        return -small if sign else small
    exponent = 255 if exponent == 31 else exponent + 112
    return np.int32(sign | (exponent << 23) | (fraction << 13)).view(np.float32)
''',
    "float_to_half": '''
@njit
def float_to_half(x):
    """The 16 bits of the float16 nearest ``x``, a float32; ties go to even."""
    bits = np.float32(x).view(np.int32)
    sign = np.int32((bits >> 16) & 0x8000)
    size = abs(x)
    if size != size:
        return np.uint16(sign | 0x7E00 | ((bits >> 13) & 0x3FF))
    if size >= np.float32(65520.0):
        return np.uint16(sign | 0x7C00)
    if size < np.float32(6.1035156e-05):  # subnormal: adding 0.5 rounds to a multiple of 2**-24
        return np.uint16(sign | np.int32(np.float32(size + np.float32(0.5)).view(np.int32) - 0x3F000000))
    magnitude = np.float32(size).view(np.int32)
    rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1)
    return np.uint16(sign | ((rounded - 0x38000000) >> 13))
''',
    "round_to_half": '''
@njit
def round_to_half(x):
    """``x`` rounded to float16, as an equal float32."""
    return half_to_float(float_to_half(x))
''',
    "round_to_odd": '''
@njit
def round_to_odd(x):
    """The float64 ``x`` as a float32 whose last bit is set if that is inexact, so that rounding to float16 is the
    only rounding (Boldo and Melquiond, IEEE Trans. Computers 2008)."""
    near = np.float32(x)
    if np.float64(near) == x or x != x:
        return near
    bits = np.float32(near).view(np.int32)
    if abs(np.float64(near)) > abs(x):
        bits = np.int32(bits - 1)
    return np.int32(bits | 1).view(np.float32)
''',
}
_SUMS = {
    "add_with_rest": '''
@njit
def add_with_rest(total, rest, x):
    """``total + x``, and ``rest`` with what that rounds off (Neumaier, ZAMM 54, 1974)."""
    new = total + x
    if abs(new) < np.inf:
        rest += (total - new) + x if abs(total) >= abs(x) else (x - new) + total
    return new, rest
''',
    "sum_over_block": '''
@njit
def sum_over_block(total, rest):
    """The sum over all threads of a block, and what it rounds off; all of them get both."""
    totals = cuda.shared.array(THREADS, np.float64)
    rests = cuda.shared.array(THREADS, np.float64)
    t, k = cuda.threadIdx.x, cuda.blockDim.x // 2
    cuda.syncthreads()
    totals[t] = total
    rests[t] = rest
    cuda.syncthreads()
    while k > 0:
        if t < k:
            total, rest = add_with_rest(totals[t], rests[t], totals[t + k])
            totals[t] = total
            rests[t] = rest + rests[t + k]
        cuda.syncthreads()
        k //= 2
    return totals[0], rests[0]
''',
}
_OVER_BLOCK = '''
@njit
def {name}(x):
    """Combines ``x`` of all threads of a block, which is {monoid}; all of them get the result."""
    shared = cuda.shared.array(THREADS, {dtype})
    t, k = cuda.threadIdx.x, cuda.blockDim.x // 2
    cuda.syncthreads()
    shared[t] = x
    cuda.syncthreads()
    while k > 0:
        if t < k:
            shared[t] = {combined}
        cuda.syncthreads()
        k //= 2
    return shared[0]
'''
_NEEDS = {"sum_over_block": ("add_with_rest",), "round_to_half": ("float_to_half", "half_to_float")}

_TO_INTEGER = '''
@njit
def float_to_{name}(x):
    """``x`` without its fraction as {dtype}; where that is out of range, what x86-64 and NumPy give."""
    inside = x >= {low} and x < {high}
    return np.{dtype}(np.{wide}(x) if inside else np.{wide}({smallest}))
'''
_TO_U64 = '''
@njit
def float_to_u64(x):
    """``x`` without its fraction as uint64; where that is out of range, what x86-64 and NumPy give."""
    if x >= 9223372036854775808.0 and x < 18446744073709551616.0:
        return np.uint64(np.int64(x - 9223372036854775808.0)) + np.uint64(9223372036854775808)
    inside = x >= -9223372036854775808.0 and x < 9223372036854775808.0
    return np.uint64(np.int64(x)) if inside else np.uint64(9223372036854775808)
'''


def float_to_integer(name: str) -> str:
    """The text of the function ``float_to_i32`` or the like, for the dtype ``name``."""
    if name == "u64":
        return _TO_U64
    bits, signed = int(name[1:]), name[0] == "i"
    wide = 32 if bits <= 16 or (bits == 32 and signed) else 64
    low = -(2.0 ** (wide - 1))
    numbers = {"low": low, "high": -low, "smallest": -(2 ** (wide - 1))}
    return _TO_INTEGER.format(name=name, dtype=f"{'int' if signed else 'uint'}{bits}", wide=f"int{wide}", **numbers)


class SupportLibrary:
    """The support functions that a module needs, in the order of their definitions."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    @property
    def text(self) -> str:
        return "".join(f"\n{text}" for text in self._texts.values())

    def function(self, name: str) -> str:
        """The name by which a kernel calls the function ``name``, which is added now if it is new."""
        for needed in _NEEDS.get(name, ()):
            self.function(needed)
        if (text := _HALF.get(name) or _SUMS.get(name)) is not None:
            self._texts.setdefault(name, text)
        elif name.startswith("float_to_"):
            self._texts.setdefault(name, float_to_integer(name.removeprefix("float_to_")))
        else:
            self._texts.setdefault(name, "\n" + plain_source(name, INTEGER_FUNCTIONS[name], {"u64": "np.uint64"}))
        return name

    def over_block(self, monoid: str, dtype: str, combined: str) -> str:
        """The function that combines numbers of ``dtype``, such as ``np.float32``, of all threads of a block.

        ``combined`` is the text that combines ``shared[t]`` and ``shared[t + k]``.
        """
        name = f"{monoid}_over_block_{dtype.removeprefix('np.').strip('_')}"
        self._texts.setdefault(name, _OVER_BLOCK.format(name=name, monoid=monoid, dtype=dtype, combined=combined))
        return name


def plain_source(name: str, function: Callable[..., Any], renamed: Mapping[str, str]) -> str:
    """The source of ``function`` as the njit function ``name`` without annotations, with ``renamed`` names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.name, tree.returns, tree.decorator_list = name, None, []
    for part in ast.walk(tree):
        if isinstance(part, ast.arg):
            part.annotation = None
        elif isinstance(part, ast.Name):
            part.id = renamed.get(part.id, part.id)
    return f"@njit\n{ast.unparse(tree)}\n"
