"""Maps of the positions along an axis to those along another, as runs of evenly spaced ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np


class AxisRun(NamedTuple):
    """``length`` positions: from ``start`` on, ``step`` apart; or no positions, for which zeros are read.

    A step of 0 repeats one position, as the edge of a padded array does.
    """

    start: int
    step: int
    length: int
    zeros: bool = False


AxisRuns = tuple[AxisRun, ...]


def whole(length: int) -> AxisRuns:
    """Every position of an axis, in order."""
    return (AxisRun(0, 1, length),)


def zero_run(length: int) -> AxisRun:
    return AxisRun(0, 0, length, zeros=True)


def size(runs: AxisRuns) -> int:
    """How many positions are read."""
    return sum(run.length for run in runs)


def stops(runs: AxisRuns) -> list[int]:
    """Where each run ends, among the positions that read."""
    return list(accumulate(run.length for run in runs))


def ends(runs: AxisRuns) -> tuple[int, int]:
    """The first and the last position that is read, of runs that are not all zeros."""
    ends = [p for run in runs if not run.zeros for p in (run.start, run.start + run.step * (run.length - 1))]
    return min(ends), max(ends)


def joined(runs: Iterable[AxisRun]) -> AxisRuns:
    """``runs`` without empty ones, and neighbours that go on as one run as one."""
    joined: list[AxisRun] = []
    for run in runs:
        if not run.length:
            continue
        if joined and (longer := _continued(joined[-1], run)) is not None:
            joined[-1] = longer
        else:
            joined.append(run)
    return tuple(joined)


def _continued(a: AxisRun, b: AxisRun) -> AxisRun | None:
    """``a`` and then ``b`` as one run, if they are one."""
    if a.zeros or b.zeros:
        return AxisRun(0, 0, a.length + b.length, zeros=True) if a.zeros and b.zeros else None
    step = b.start - (a.start + a.step * (a.length - 1))
    alike = all(run.length == 1 or run.step == step for run in (a, b))
    return AxisRun(a.start, step, a.length + b.length) if alike and abs(step) <= 1 else None


def sliced(runs: AxisRuns, start: int, step: int, length: int) -> AxisRuns:
    """The runs of the positions ``start``, ``start + step``, ... of an axis that has ``runs``."""
    if not length:
        return ()
    if step < 0:
        backwards = tuple(run._replace(start=run.start + run.step * (run.length - 1), step=-run.step) for run in reversed(runs))
        return sliced(backwards, size(runs) - 1 - start, -step, length)
    return joined(_parts(runs, start, max(step, 1), length))


def _parts(runs: AxisRuns, start: int, step: int, length: int) -> Iterator[AxisRun]:
    """What the positions from ``start`` on, ``step`` apart, have of each run."""
    begin = 0
    for run, end in zip(runs, stops(runs), strict=True):
        first = max(0, -(-(begin - start) // step))
        last = min(length - 1, (end - 1 - start) // step)
        if first <= last:
            at = start + first * step - begin
            yield run._replace(start=run.start + run.step * at, step=run.step * step, length=last - first + 1)
        begin = end


def positions_read(runs: AxisRuns) -> np.ndarray[Any, Any]:
    """The position that each one reads, -1 for zeros."""
    parts = [np.full(r.length, -1) if r.zeros else r.start + r.step * np.arange(r.length) for r in runs]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def read_axes(x: np.ndarray[Any, Any], axes: Iterable[AxisRuns]) -> np.ndarray[Any, Any]:
    """The elements of ``x`` that ``axes`` read along each axis."""
    for axis, runs in enumerate(axes):
        read = positions_read(runs)
        x = np.take(x, np.maximum(read, 0), axis) if x.shape[axis] else np.zeros_like(x, shape=_with(x, axis, len(read)))
        x[(slice(None),) * axis + (read < 0,)] = 0
    return x


def _with(x: np.ndarray[Any, Any], axis: int, length: int) -> tuple[int, ...]:
    return (*x.shape[:axis], length, *x.shape[axis + 1 :])
