"""The turns of a loop: one after the other in Python, which a trace may replace by one loop of its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import optree

from jitgrad.core.context import current_interpreter
from jitgrad.core.tensor import Tensor
from jitgrad.ops.joining import concat, stack

FEWEST_TURNS = 16  # of which a trace makes a loop: fewer get kernels that are joined with each other, and compile in time


@dataclass(frozen=True, eq=False, slots=True)
class Turns:
    """``carry, parts = turn(carry, slices)``, again and again.

    Attributes:
        arrays: through whose elements along the first axis the turns go; a turn gets a list of its own ones.
        length: the number of turns.
        numbers: those of the turns, each of which gets its own as a further slice, if they have any.
        fewest: so many turns are worth a loop.
    """

    name: str
    turn: Callable[[Any, list[Any]], tuple[Any, Any]]
    arrays: Sequence[Tensor]
    length: int
    reverse: bool = False
    numbers: range | None = None
    fewest: int = FEWEST_TURNS

    def run(self, carry: Any) -> TurnResults:
        """All turns, starting with ``carry``."""
        make = _Registered.make
        loop = make(self) if make is not None and current_interpreter.get().tracing and self.length >= self.fewest else None
        parts: list[Any] = []
        for done in range(self.length):
            if loop is not None and (rest := loop.rest(carry, done)) is not None:
                return TurnResults(rest.carry, self._joined(parts, rest.parts))
            k = self.length - 1 - done if self.reverse else done
            number = [] if self.numbers is None else [self.numbers[k]]
            carry, part = self.turn(carry, [*[x[k] for x in self.arrays], *number])
            parts.append(part)
        return TurnResults(carry, _stacked(parts[::-1] if self.reverse else parts) if parts else None)

    def _joined(self, first: list[Any], rest: Any) -> Any:
        """The stacked parts of the ``first`` turns, which came one by one, and of the ``rest``."""
        if not first:
            return rest
        parts = [rest, _stacked(first[::-1])] if self.reverse else [_stacked(first), rest]
        return optree.tree_map(lambda *leaves: concat(leaves), *parts)


class TurnResults(NamedTuple):
    """The last carry, and the parts of all turns, stacked; None without a turn."""

    carry: Any
    parts: Any


class _Loop(Protocol):
    def rest(self, carry: Any, done: int) -> TurnResults | None:
        """The turns after the first ``done`` as one loop; None if at least the next must run in Python."""


class _Registered:
    make: Callable[[Turns], _Loop] | None = None


def trace_turns_by(make: Callable[[Turns], _Loop]) -> None:
    """Let ``make`` make the loops of traces."""
    _Registered.make = staticmethod(make)


def _stacked(trees: Sequence[Any]) -> Any:
    """Pytrees of one structure as one, with a first axis more."""
    return optree.tree_map(lambda *leaves: stack(leaves), *trees)
