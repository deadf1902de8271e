"""Whether the processor flushes denormal numbers: numbers too small for a full mantissa become 0."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any

from jitgrad.backends.llvm.code_object import compile_ir

# Bits of the control register of SSE and AVX, which each thread has: flush results to zero, read denormals as zeros
# (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, section 10.2.3).
_FLUSH, _ZEROS = 1 << 15, 1 << 6
_TEXT = """
define i32 @change(i32 %cleared, i32 %set) {
  %word = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  %old = load i32, ptr %word
  %kept = xor i32 %cleared, -1
  %rest = and i32 %old, %kept
  %new = or i32 %rest, %set
  store i32 %new, ptr %word
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  ret i32 %old
}
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""


class _State:
    """What `flush` was last asked for; None: nothing, so threads have what they inherited."""

    wanted: bool | None = None


def flush(wanted: bool) -> bool:
    """Flush denormals in this thread, and in threads that call `follow`; False if the processor cannot."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    _State.wanted = wanted
    follow()
    return True


def follow() -> None:
    """Do in this thread what `flush` was last asked for."""
    if _State.wanted is not None:
        bits = _FLUSH | _ZEROS
        _change()[0](bits, bits if _State.wanted else 0)


@cache
def _change() -> tuple[Any, Any]:
    """The function that changes the register, and the owner of its code."""
    code = compile_ir(_TEXT, "change", key="")
    return ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)(code.address), code
