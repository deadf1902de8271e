"""Arrays for the results of a program, the same again and again: a graph is captured for their addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.device_array import DeviceArray
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.device.pool import DevicePool

# A caller who replaces gradients frees the old ones after the call, so that two sets take turns.
MAX_SETS = 3

Spec = tuple[Shape, Dtype]


class ResultSet:
    """Arrays that go to a caller together. ``addresses`` are theirs, and between them, by number, the ``others``."""

    __slots__ = ("arrays", "addresses", "_objects", "_idle")

    def __init__(self, arrays: Sequence[DeviceArray], others: Mapping[int, int]) -> None:
        self.arrays: tuple[DeviceArray, ...] = tuple(arrays)
        self.addresses: list[int] = [x.address for x in arrays]
        for number, address in others.items():
            self.addresses.insert(number, address)
        # a caller who holds only views holds the memory, not the array
        self._objects = (*arrays, *[x.owner for x in arrays])
        self._idle: list[int] = []

    def watch(self, pool: DevicePool) -> None:
        """Nobody else refers to the arrays now: but for ``pool``, while another thread asks it what is live."""
        with pool.lock:
            self._idle = [*map(getrefcount, self._objects)]

    @property
    def is_idle(self) -> bool:
        """Whether nobody else refers to an array, or to its memory."""
        return [*map(getrefcount, self._objects)] == self._idle


class ResultSets:
    """Sets of arrays for the results ``specs``. A set is used again when the caller holds none of its arrays.

    ``others`` are addresses of results by their rising numbers, which are not in the sets.

    When all sets are in use, new arrays are made that belong to none.
    """

    def __init__(self, device: CudaDevice, specs: Sequence[Spec], others: Mapping[int, int]) -> None:
        self._device = device
        self._specs = specs
        self._others = others
        self._none = ResultSet((), others)
        device.pool.add_holder(self)
        self._sets: list[ResultSet] = []

    def take(self) -> ResultSet:
        """Arrays that nobody else holds."""
        if not self._specs:
            return self._none
        for known in self._sets:
            if known.is_idle:
                return known
        new = self._new_set()
        if len(self._sets) < MAX_SETS:
            new.watch(self._device.pool)
            self._sets.append(new)
        return new

    def _new_set(self) -> ResultSet:
        return ResultSet([self._device.empty(shape, dtype) for shape, dtype in self._specs], self._others)

    def release(self) -> None:
        """Let go of the sets that nobody uses, because memory is short."""
        self._sets = [known for known in self._sets if not known.is_idle]
