"""Non-temporal stores in IR text: marked before LLVM vectorises a loop, made afterwards.

An ordinary store to memory that is in no cache loads the line first, a third of a copy's traffic; a
non-temporal store of a whole line does not. LLVM vectorises a non-temporal store only if it knows
its alignment. It does not know that of one element, but every vector is aligned: results start at a
cache line, and blocks at multiples of a vector.

Where a vector is shorter than a line, the CPU has to combine two stores. Measured with AVX2 (Zen
3), that gained a tenth at most, and took up to four times as long where a result began just behind
an operand in its page. So stores stay ordinary.
"""

from __future__ import annotations

import re

LINE_BITS = 512
_ASKED = re.compile(r", !nontemporal !\d+")
_GROUP = 2_000_000  # the metadata node that marks stores: LLVM keeps an access group when it vectorises
_MARK = f", !llvm.access.group !{_GROUP}"
_STORE = re.compile(r"^( *store <(\d+) x (\w+)> .*, align )\d+(.*), !llvm\.access\.group !\d+", re.MULTILINE)
_BITS = {"half": 16, "float": 32, "double": 64}
FENCE = "call void @llvm.x86.sse.sfence()"  # orders the stores before those that tell other threads of them


def mark_stores(text: str, vector_bits: int) -> str:
    """IR ``text``, not yet optimised, with ordinary stores for non-temporal ones: marked where a
    vector is a line."""
    if vector_bits < LINE_BITS or not _ASKED.search(text):
        return _ASKED.sub("", text)
    return f"{_ASKED.sub(_MARK, text)}\n!{_GROUP} = distinct !{{}}\n"


def has_marks(text: str) -> bool:
    """Whether `mark_stores` put marks into IR ``text``."""
    return _MARK in text


def unmark_stores(text: str) -> str:
    """``text``, optimised, with non-temporal stores of marked vectors of one line; a loop's
    remainder has ordinary ones."""
    return f"{_STORE.sub(_streaming, text)}\n!{_GROUP} = !{{i32 1}}\n"


def _streaming(store: re.Match[str]) -> str:
    start, count, element, rest = store.groups()
    size = int(count) * (_BITS.get(element) or int(element[1:])) // 8
    return f"{start}{size}{rest}, !nontemporal !{_GROUP}" if 8 * size == LINE_BITS else store[0]
