"""The symbols that object code leaves undefined, and the ones of compiler-rt that a process may lack.

LLVM's code generator calls functions that no module names, for instance ``__truncdfhf2`` where it
rounds a double to a float16. MCJIT, as llvmlite builds it, gives a name it cannot find the address
0, so they are looked up before the code is linked. This module imports llvmlite.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_SECTION_FIELDS = struct.Struct("<IIQQQQIIQQ")  # of an ELF section header, 64-bit
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_SYMBOL_TABLE = 2

# Rounds to a float with the last bit odd where it is inexact, then to the half: a single rounding
# (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 2008).
DOUBLE_TO_HALF = """
declare double @llvm.fabs.f64(double)
define half @__truncdfhf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %size = call double @llvm.fabs.f64(double %x)
  %size_back = call double @llvm.fabs.f64(double %back)
  %beyond = fcmp ogt double %size_back, %size
  %one_less = zext i1 %beyond to i32
  %bits = bitcast float %near to i32
  %below = sub i32 %bits, %one_less
  %inexact = fcmp one double %back, %x
  %last = zext i1 %inexact to i32
  %odd = or i32 %below, %last
  %single = bitcast i32 %odd to float
  %half = fptrunc float %single to half
  ret half %half
}
"""
PROVIDED = {"__truncdfhf2": DOUBLE_TO_HALF}


def undefined_symbols(object_code: bytes) -> frozenset[str]:
    """The names that ELF ``object_code`` takes from elsewhere; none are read from other formats."""
    if object_code[:5] != b"\x7fELF\x02":
        return frozenset()
    return frozenset(name for name in _undefined(object_code) if name and name != "_GLOBAL_OFFSET_TABLE_")


def _undefined(code: bytes) -> Iterator[str]:
    (headers,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [_SECTION_FIELDS.unpack_from(code, headers + k * size) for k in range(count)]
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            names = sections[link][4]
            for name, _, _, section, _, _ in _SYMBOL.iter_unpack(code[start : start + length]):
                if section == 0:
                    yield code[names + name : code.index(b"\0", names + name)].decode()
