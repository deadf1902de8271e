"""Places outside a function that hold other tensors on every call: further arguments of it.

The hidden state of a recurrent network, ``self.h = cell(x, self.h)``, is read and replaced by each
call, and so is a counter, ``self.steps += 1``. A guard for what was there during the trace would fail
on every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from jitgrad.core.errors import UnguardableError
from jitgrad.guards.guard import Guard
from jitgrad.guards.writes import HeldPlace, can_be_held, replaced_places

MOST_PLACES = 64  # reading each costs some 0.1 us a call


class ReplacedTensorsError(UnguardableError):
    """The function reads tensors and numbers in ``places`` and replaces them: they must be arguments."""

    def __init__(self, message: str, places: Sequence[HeldPlace]) -> None:
        super().__init__(message)
        self.places = places


class ChangedContainersError(UnguardableError):
    """The function changes the lists or dicts of tensors that ``places`` hold: they cannot be arguments."""

    def __init__(self, message: str, places: Sequence[HeldPlace]) -> None:
        super().__init__(message)
        self.places = places


class HeldPlaces:
    """The places of one @jit function."""

    def __init__(self) -> None:
        self.places: tuple[HeldPlace, ...] = ()
        self._given_back: set[tuple[int, Hashable]] = set()  # places that were held, which guards watch again
        self._replaced: Counter[tuple[int, Hashable]] = Counter()  # by callers, between calls

    def read(self) -> tuple[Any, ...]:
        """What the places hold: numbers, tensors and containers of tensors, and None for anything else."""
        return tuple([x if can_be_held(x := place.read()) else None for place in self.places])

    def add(self, places: Iterable[HeldPlace]) -> bool:
        """Take ``places`` from now on; whether any is new."""
        known = {place.identity for place in self.places} | self._given_back
        new = [place for place in places if place.identity not in known][: MOST_PLACES - len(self.places)]
        self.places += tuple(new)
        return bool(new)

    def add_from(self, error: Exception) -> bool:
        """Whether the function can be traced again, with the tensors that it replaced as arguments, or without the containers
        that it changes."""
        if isinstance(error, ChangedContainersError):
            return self._give_back(error.places)
        return isinstance(error, ReplacedTensorsError) and self.add(error.places)

    def _give_back(self, places: Iterable[HeldPlace]) -> bool:
        held = {place.identity for place in self.places}
        self._given_back |= {place.identity for place in places} & held
        self.places = tuple([place for place in self.places if place.identity not in self._given_back])
        return len(self.places) < len(held)

    def add_replaced(self, guards: Iterable[Guard]) -> bool:
        """Take the places in which a caller replaced tensors or a number for the second time, as ``guards`` show."""
        found = {place.identity: place for guard in guards for place in replaced_places(guard.checks, can_be_held)}
        self._replaced.update([*found])
        return self.add(place for identity, place in found.items() if self._replaced[identity] > 1)
