"""Measurements of one run, in memory and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import Outcome, Row
from benchmarks.roofline import KernelLimit


@dataclass(slots=True)
class Compiling:
    """Seconds from the first call to its result, in a fresh process, with an empty and with a filled cache."""

    peer: str
    operations: int
    cold: float = math.nan
    cached: float = math.nan
    failure: str = ""


@dataclass(slots=True)
class Record:
    """The measurements of one run of the benchmarks."""

    date: str
    machine: dict[str, str]
    quick: bool
    outcomes: list[Outcome]
    compiling: list[Compiling] = field(default_factory=list)

    def updated(self, new: Record) -> Record:
        """These measurements, with workloads that ``new`` has replaced by its own."""
        fresh = {o.workload: o for o in new.outcomes}
        outcomes = [fresh.pop(o.workload, o) for o in self.outcomes]
        return Record(new.date, new.machine, new.quick, [*outcomes, *fresh.values()], new.compiling or self.compiling)


def _without_nan(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _without_nan(v) for k, v in x.items()}
    if isinstance(x, list):
        return [_without_nan(v) for v in x]
    return None if isinstance(x, float) and math.isnan(x) else x


def save_record(record: Record, path: Path) -> None:
    """Write JSON; missing measurements are null."""
    path.write_text(json.dumps(_without_nan(asdict(record)), indent=1) + "\n", encoding="utf-8")


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {k: math.nan if v is None else v for k, v in row.items()}


def load_record(path: Path) -> Record:
    """Read a file of ``save_record``."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    outcomes = []
    for entry in raw["outcomes"]:
        rows = [Row(**_numbers(row)) for row in entry.pop("rows")]
        kernels = [KernelLimit(**kernel) for kernel in entry.pop("kernels", ())]
        outcomes.append(Outcome(**_numbers(entry), rows=rows, kernels=kernels))
    compiling = [Compiling(**_numbers(c)) for c in raw["compiling"]]
    return Record(raw["date"], raw["machine"], raw["quick"], outcomes, compiling)
