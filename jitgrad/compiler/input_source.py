"""Where the inputs of a traced program come from at call time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


class SourceKind(Enum):
    """What the key of an `InputSource` is."""

    ARGUMENT = "the position among the flat arguments"
    TENSOR = "a tensor that was reached through a closure, a global or an attribute"
    ARRAY = "an array that was reached in the same way"
    CONSTANT = "an array that the trace made"
    GRADIENT = "the InputSource of the tensor whose .grad is read"
    SEED = "the position of the output that a gradient comes from"


@dataclass(frozen=True, eq=False, slots=True)
class InputSource:
    """Where a program input comes from at call time."""

    kind: SourceKind
    key: Any

    def of_owner(self) -> InputSource:
        """Where the tensor comes from whose gradient this is; else the same."""
        return self.key if self.kind is SourceKind.GRADIENT else self

    def resolve(self, leaves: Sequence[Any]) -> Any:
        """The object in a call with the flat arguments ``leaves``."""
        if self.kind is SourceKind.ARGUMENT:
            return leaves[self.key]
        return self.key.resolve(leaves)._grad if self.kind is SourceKind.GRADIENT else self.key
