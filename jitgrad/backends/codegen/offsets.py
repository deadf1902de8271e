"""The text of what an access reads along an axis where its positions are not those of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

from jitgrad.compiler.lowering.kernel_ir import Segment

NO_END = str(1 << 62)  # the end of a loop over any number of elements


class Part(Enum):
    """The part of the last axis that a loop runs over, on which depends how it reads what goes on elsewhere."""

    ANYWHERE = "positions are chosen element by element"
    INTERIOR = "within one segment of every access, in rows that are not zeros"
    EDGES = "masked loads, of which LLVM makes vectors; all are masked in rows of zeros"
    ROW = "masked loads in a whole row that is too short for an interior"


def position_text(segments: Sequence[Segment], variable: str) -> str:
    """The position that is read in iteration ``variable``; any in which there is memory where zeros are read.

    For the segments of ``pad(x, 1)``: ``select(j < 1, 0, select(j < e1_0, (j - 1), 0))``.
    """
    return _chosen(segments, variable, [in_segment(segment, variable) for segment in segments])


def in_segment(segment: Segment, variable: str) -> str:
    """The position that is read in an iteration of ``segment``."""
    if segment.step == 0:
        return segment.first
    scaled = variable if segment.step == 1 else f"{variable} * {segment.step}"
    if segment.first == "0":
        return scaled
    return f"({scaled} - {segment.first[1:]})" if segment.first[0] == "-" else f"({scaled} + {segment.first})"


def inside(segments: Sequence[Segment], variable: str) -> str:
    """1 where memory is read, 0 where zeros are; "" if memory always is."""
    if not any(segment.zeros for segment in segments):
        return ""
    return _chosen(segments, variable, [str(int(not segment.zeros)) for segment in segments])


def all_of(conditions: Iterable[str]) -> str:
    """The product of ``conditions`` that there are."""
    return " * ".join(text for text in conditions if text)


def single_positions(segments: Sequence[Segment]) -> Iterator[tuple[int, str]]:
    """The segments that read one position, by number, and that position."""
    for k, (segment, begin) in enumerate(zip(segments, _begins(segments), strict=True)):
        if not segment.zeros and (segment.step == 0 or segment.single):
            yield k, in_segment(segment, begin)


def masked_text(segments: Sequence[Segment], variable: str, load: Callable[[str, str, str], str], single: str, zero: str) -> str:
    """The element that is read in iteration ``variable``.

    ``load`` writes the load of a position between two bounds; ``single`` is the name, but for the number of the segment, of
    elements that are loaded already.
    """
    known = {k for k, _ in single_positions(segments)}
    values = []
    for k, (segment, begin) in enumerate(zip(segments, _begins(segments), strict=True)):
        if segment.zeros:
            values.append(zero)
        else:
            values.append(f"{single}{k}" if k in known else load(in_segment(segment, variable), begin, segment.stop))
    if len(segments) - len(known) - sum(s.zeros for s in segments) == 1 and not known:
        return next(value for value in values if value != zero)  # a masked load is 0 elsewhere
    return _chosen(segments, variable, values)


def _begins(segments: Sequence[Segment]) -> list[str]:
    return ["0", *(segment.stop for segment in segments)][: len(segments)]


def _chosen(segments: Sequence[Segment], variable: str, texts: Sequence[str]) -> str:
    """The text of the segment that iteration ``variable`` is in."""
    result = texts[-1]
    for segment, text in zip(reversed(segments[:-1]), reversed(texts[:-1]), strict=True):
        result = text if text == result else f"select({variable} < {segment.stop}, {text}, {result})"
    return result
