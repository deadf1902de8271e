"""Runs tests for a number of seconds: `python tools/bounded_tests.py SECONDS PYTEST_ARGUMENTS...`.

The order is shuffled, the same in each run, so that what there is time for has some of each file. The last line is the row of
`tools/check_cuda_hardware.py`; what failed, with its texts, comes before it.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.hardware_run import Row


class _Bounded:
    """Counts outcomes, and starts no test later than ``seconds`` after it was made."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        random.Random(0).shuffle(items)

    def pytest_runtest_setup(self) -> None:
        if time.monotonic() > self._end:
            self.counts["left"] += 1
            pytest.skip("no time was left")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.counts["failed"] += 1
            self.failed.append(report.nodeid.split("/")[-1])
        elif report.when == "call":
            self.counts[report.outcome] += 1


def main() -> int:
    """1 if a test failed, or none ran."""
    bounded = _Bounded(float(sys.argv[1]))
    status = pytest.main([*sys.argv[2:], "-p", "no:randomly"], plugins=[bounded])
    counts = bounded.counts
    text = f"{counts['passed']} passed, {counts['failed']} failed"
    text += f"; no time was left for {counts['left']}" if counts["left"] else ""
    text += f": {', '.join(bounded.failed[:3])}" if bounded.failed else ""
    good = status == 0 and not counts["failed"] and counts["passed"] > 0
    print(json.dumps(asdict(Row("tests", "end-to-end tests", text, good))), flush=True)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
