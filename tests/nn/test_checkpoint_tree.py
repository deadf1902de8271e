"""Files of more than a state dict: what training loops save beside it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import CheckpointError

safetensors = pytest.importorskip("safetensors")


def test_a_training_loop_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    def run(steps: int, file: Path | None = None) -> list[float]:
        jg.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = jg.optim.Adam(model.parameters(), lr=0.1)
        schedule = jg.optim.lr_scheduler.StepLR(optimizer, 2)
        first = 0
        if file is not None:
            saved = jg.load(file, map_location="cpu", weights_only=False)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            schedule.load_state_dict(saved["schedule"])
            first = saved["epoch"] + 1
        losses = []
        for epoch in range(first, first + steps):
            loss = (model(jg.ones(2, 3)) - 1.0).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
            jg.save({**state, "epoch": epoch, "best": np.float64(0.5), "args": {"lr": 0.1}}, tmp_path / "last")
        return losses

    assert run(3) + run(3, tmp_path / "last") == run(6)


@pytest.mark.parametrize(
    "tree",
    [
        {"epoch": 3, "note": "last", "none": None, "flags": (True, 1.5, float("inf")), 7: []},
        {"a": {"b": jg.ones(2)}, "a.b": jg.zeros(3, dtype=jg.int64)},
        [jg.ones(2), (jg.tensor(1.0), {})],
        jg.ones(3),
    ],
)
def test_trees_come_back_as_they_were(tmp_path: Path, tree: Any) -> None:
    jg.save(tree, tmp_path / "file")

    assert repr(jg.load(tmp_path / "file")) == repr(tree)


def test_a_state_dict_is_a_file_as_other_libraries_write_them(tmp_path: Path) -> None:
    jg.save(nn.Linear(2, 1), tmp_path / "file")

    assert sorted(safetensors.safe_open(tmp_path / "file", "numpy").keys()) == ["bias", "weight"]
    assert safetensors.safe_open(tmp_path / "file", "numpy").metadata() is None


def test_other_objects_are_errors_that_name_them(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"args\.0 is of class SimpleNamespace.*vars"):
        jg.save({"model": {}, "args": [SimpleNamespace(lr=1)]}, tmp_path / "file")
    assert not (tmp_path / "file").exists()
