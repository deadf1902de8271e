"""Whose memory the last carries of a loop have: a turn may hand on a tensor that it was given, or share one between carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitgrad.compiler.loops.body_trace import RecordedBody
from jitgrad.core.tensor import Tensor


@dataclass(frozen=True, eq=False, slots=True)
class CarriedMemory:
    """What the last carries are in eager execution, so that a change of one in place shows where it does there.

    Attributes:
        existing: the leaves of the carry that are tensors from before the loop, or views of the arrays it goes through.
        same: leaves that are one tensor with an earlier leaf, and that leaf.
    """

    existing: Mapping[int, Tensor]
    same: Mapping[int, int]


class CarriedTensors:
    """The leaves of the carry ``before`` the loop, what was ``given`` for them, and those ``after`` the recorded turn.

    ``carried``: the leaves that a turn replaces, in the order of the results of ``recorded``.
    """

    def __init__(
        self,
        before: Sequence[Any],
        given: Mapping[int, Tensor],
        after: Sequence[Any],
        carried: Sequence[int],
        recorded: RecordedBody,
    ) -> None:
        self.before = before
        self.after = after
        self.memory_of: dict[int, Any] = dict(zip(carried, recorded.memory, strict=False))
        self._leaf_of: dict[int, int] = {id(x): k for k, x in given.items()}

    def last(self, numbers: Sequence[int], slices: Sequence[Tensor], arrays: Sequence[Tensor]) -> CarriedMemory | None:
        """After turns of these ``numbers``, which get ``slices`` of ``arrays``.

        None if a carry is a view of what no turn made, or shares memory with another one.
        """
        existing, same, made = dict[int, Tensor](), dict[int, int](), dict[tuple[int, int], tuple[int, Tensor]]()
        position = {id(x): k for k, x in enumerate(slices)}
        for k in self.memory_of:
            leaf, turn = self._origin(k, len(numbers))
            if turn < 0 or leaf not in self.memory_of:
                existing[k] = self.before[leaf]
            elif id(x := self.after[leaf]) in position:
                existing[k] = arrays[position[id(x)]][numbers[turn]]
            elif (owner := self.memory_of[leaf].owner) is None:
                return None
            elif not self.memory_of[leaf].made:
                existing[k] = owner
            else:
                first, known = made.setdefault((turn, id(owner)), (k, x))
                if known is not x:
                    return None
                if first != k:
                    same[k] = first
        return CarriedMemory(existing, same)

    def _origin(self, leaf: int, length: int) -> tuple[int, int]:
        """The leaf that a turn gave, and that turn, of which later ones made ``leaf`` after ``length`` turns; -1: no turn."""
        for turn in reversed(range(length)):
            source = self._leaf_of.get(id(self.after[leaf])) if leaf in self.memory_of else None
            if source is None:
                return leaf, turn
            leaf = source
        return leaf, -1
