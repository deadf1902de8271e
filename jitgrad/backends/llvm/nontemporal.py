"""Stores past the caches, in IR text: marked before LLVM vectorises a loop, made when it has.

A store into memory that is in no cache reads the line first, a third of a copy's traffic; a streaming store of a whole
line does not. LLVM refuses to vectorise a streaming store unless it knows it to be aligned, which is not known of one
element of an array, but is of every vector: kernels stream to memory that starts at a line, from multiples of a vector on.

Where a vector is shorter than a line, two stores make one line, which a CPU has to collect first. Measured on AVX2 (Zen 3),
it gained a tenth at most, and took up to four times as long where a result lay just behind an operand in its page. So
there ordinary stores are left.
"""

from __future__ import annotations

import re

LINE_BITS = 512
_ASKED = re.compile(r", !nontemporal !\d+")
_GROUP = 2_000_000  # of the metadata node that marks stores: LLVM hands an access group on when it vectorises
_MARK = f", !llvm.access.group !{_GROUP}"
_STORE = re.compile(r"^( *store <(\d+) x (\w+)> .*, align )\d+(.*), !llvm\.access\.group !\d+", re.MULTILINE)
_BITS = {"half": 16, "float": 32, "double": 64}
FENCE = "call void @llvm.x86.sse.sfence()"  # other threads see what came before it


def mark_stores(text: str, vector_bits: int) -> str:
    """IR ``text``, not yet optimised, with ordinary stores for streaming ones: marked where vectors are lines."""
    if vector_bits < LINE_BITS or not _ASKED.search(text):
        return _ASKED.sub("", text)
    return f"{_ASKED.sub(_MARK, text)}\n!{_GROUP} = distinct !{{}}\n"


def has_marks(text: str) -> bool:
    """Whether IR ``text`` came from `mark_stores` with marks."""
    return _MARK in text


def made(text: str) -> str:
    """``text``, optimised, with streaming stores of the marked vectors that are lines; what is left of a loop is not."""
    return f"{_STORE.sub(_streaming, text)}\n!{_GROUP} = !{{i32 1}}\n"


def _streaming(store: re.Match[str]) -> str:
    start, count, element, rest = store.groups()
    size = int(count) * (_BITS.get(element) or int(element[1:])) // 8
    return f"{start}{size}{rest}, !nontemporal !{_GROUP}" if 8 * size == LINE_BITS else store[0]
