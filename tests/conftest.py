"""What all tests share: golden texts, the hypothesis profile, and the markers that say what a test needs."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("JITGRAD_VERIFY", "2")  # before jitgrad is imported: every pass is verified in tests
import jitgrad.backends.eager_kernels
import jitgrad.inspect  # gives compiled functions the methods that show programs
import jitgrad.scipy  # defines its ops, which tests of all ops find in the registry
from jitgrad.core.config import get_methods_of, set_immutable, set_methods_of
from jitgrad.core.dispatch import convert_operands_by
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import _Current as CurrentDevice
from jitgrad.testing.fake_driver import FakeDriver

TESTS = Path(__file__).parent
CHANGED_BY_TORCH = (
    *("max", "min", "median", "sort", "var", "std", "split", "equal", "nonzero", "repeat", "nanmedian", "cov", "corrcoef"),
    "diag", "put",
)
# the same examples in every run, so that a red test is red for everyone
hypothesis.settings.register_profile("jitgrad", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("jitgrad")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts in place of comparing them")
    parser.addoption("--slow", action="store_true", help="run tests marked slow")


def _cuda_device() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return int(cupy.cuda.runtime.getDeviceCount()) > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine or this command line cannot run."""
    run_slow = config.getoption("--slow") or "slow" in config.getoption("-m")
    peers = any(importlib.util.find_spec(name) for name in ("torch", "jax"))
    wants_cuda = any(item.get_closest_marker("cuda") for item in items)
    reasons = {
        "slow": "" if run_slow else "slow: run with --slow",
        "peers": "" if peers else "neither torch nor JAX is installed",
        "cuda": "" if not wants_cuda or _cuda_device() else "no CUDA device",
    }
    for item in items:
        for name, reason in reasons.items():
            if reason and item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def methods_of_numpy() -> Iterator[None]:
    """``import jitgrad.torch`` and ``jitgrad.jax`` change what programs mean: each test begins without, and imports anew."""
    before = {name: vars(Tensor)[name] for name in CHANGED_BY_TORCH}
    set_immutable(False)
    yield
    set_immutable(False)
    if get_methods_of() != "numpy":
        for name, method in before.items():
            setattr(Tensor, name, method)
        set_methods_of("numpy")
        convert_operands_by(None)
        sys.modules.pop("jitgrad.torch", None)
        vars(jitgrad).pop("torch", None)


class Golden:
    """Compares equal to the text in its file; with ``--update-golden`` it writes the file and is equal to anything."""

    def __init__(self, path: Path, update: bool) -> None:
        self.path = path
        self.update = update
        self.used = False

    def __eq__(self, other: object) -> bool:
        self.used = True
        text = str(other)
        if self.update:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
            return True
        return text.rstrip("\n") == self.text()

    __hash__ = None  # type: ignore[assignment]

    def text(self) -> str:
        if not self.path.exists():
            pytest.fail(f"no golden text {self.path.relative_to(TESTS)}: make it with --update-golden and read it")
        return self.path.read_text(encoding="utf-8").rstrip("\n")

    def __repr__(self) -> str:
        return f"<golden {self.path.relative_to(TESTS)}>"


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Golden texts that differ are shown line by line."""
    if op != "==" or not isinstance(right, Golden):
        return None
    import difflib

    lines = difflib.unified_diff(right.text().splitlines(), str(left).splitlines(), str(right), "this run", lineterm="")
    return [f"differs from {right}; --update-golden accepts it", *lines]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """The golden text of this test, ``tests/golden/<path of the test file>/<test name>.txt``."""
    folder = TESTS / "golden" / Path(request.path).relative_to(TESTS).with_suffix("")
    name = re.sub(r"[^\w.=,-]+", "_", request.node.name).strip("_")
    text = Golden(folder / f"{name}.txt", request.config.getoption("--update-golden"))
    yield text
    assert text.used, "the test asks for a golden text and compares nothing with it"


@pytest.fixture(autouse=True, scope="module")
def _what_earlier_modules_made_is_frozen() -> None:
    """Collections in a test look at what its module made: after 10,000 tests one of everything takes seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _emulated_devices_are_given_back() -> Iterator[None]:
    """A device that a test left behind would be that of all later tests of the process."""
    yield
    device = CurrentDevice.device
    assert device is None or not isinstance(device.driver, FakeDriver), "a test left an emulated CUDA device behind"
