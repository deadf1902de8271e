"""What tests of CUDA kernels share: the emulated target, and the comparison of its results with the cpu target's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.schedule import GridForm
from jitgrad.backends.emulated import EmulatedTarget
from jitgrad.backends.targets import TARGETS
from jitgrad.compiler.lowering.kernel_ir import Kernel, Schedule
from tests.compiled import leaves

# of the largest element, where sums are added in another order
BOUND = {"f2": 2e-3, "f4": 4e-6, "f8": 2e-13}


class RecordingTarget(EmulatedTarget):
    """Remembers the forms and the texts of the kernels that it writes, and may replace a part of the texts.

    Attributes:
        replaced: pairs of texts; each has to stand in some kernel.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forms: set[GridForm] = set()
        self.texts: list[str] = []
        self.replaced: list[tuple[str, str]] = []
        self.found: set[str] = set()

    def emit(self, kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
        self.forms.add(schedule.grid_form)  # type: ignore[attr-defined]
        main, epilogue = super().emit(kernel, schedule)
        self.texts += [source.text for source in (main, epilogue) if source is not None]
        return main, epilogue

    def load(self, kernel: Kernel, source: Source, entry: str) -> Any:
        text = source.identity
        for old, new in self.replaced:
            self.found |= {old} if old in text else set()
            text = text.replace(old, new)
        return super().load(kernel, Source(text, text, source.params), entry)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> RecordingTarget:
    """The emulated target, under its name in the registry."""
    target = RecordingTarget()
    monkeypatch.setitem(TARGETS, "emulated", target)
    return target


def assert_agree(function: Callable[..., Any], *args: Any, exact: bool = False, expected: str = "cpu") -> None:
    """The emulated kernels compute what those of the target ``expected`` do: the same bits, or, unless ``exact``,
    within the bounds of sums in another order."""
    wanted = leaves(jg.jit(function, check="off", backend=expected)(*args))
    found = leaves(jg.jit(function, check="off", backend="emulated")(*args))
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if exact or a.dtype.kind != "f":
            assert a.tobytes() == b.tobytes()
        else:
            bound = BOUND[a.dtype.str[1:]] * np.abs(b).max(initial=1e-3, where=np.isfinite(b))
            np.testing.assert_allclose(a, b, rtol=0, atol=bound)


def normal(*shape: int, dtype: str = "f4") -> jg.Tensor:
    return jg.tensor((np.random.default_rng(0).normal(size=shape) * 2).astype(dtype))
