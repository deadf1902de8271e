"""Every example runs at a small size and reaches its stated result."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their annotations up
    spec.loader.exec_module(module)
    return module


def test_digits_learns_the_same_eager_and_fused():
    pytest.importorskip("sklearn")
    digits = load("digits")

    for dtype, tolerance in (("float64", 1e-10), ("float32", 1e-4)):
        fused, eager = digits.compare(dtype, epochs=3, batch=64)
        assert np.abs(fused.losses - eager.losses).max() <= tolerance
        assert fused.losses[-5:].mean() < 0.3 * fused.losses[0]
        assert fused.accuracy == eager.accuracy > 0.85


def test_digits_gets_97_percent_right():
    pytest.importorskip("sklearn")
    digits = load("digits")

    assert digits.train("float32", epochs=20, batch=64, wrap=digits.jg.jit).accuracy > 0.97


def test_black_box_loss_agrees_with_closed_forms(capsys):
    errors = load("black_box_loss").main(spots=30, strikes=20, steps=200)

    assert max(errors[name] for name in ("price", "delta", "gamma", "vega")) < 1e-11
    assert errors["volatility"] == pytest.approx(0.2, abs=1e-3)
    assert "erf(" in capsys.readouterr().out


def test_gru_text_learns(capsys):
    losses = load("gru_text").main(steps=60, unroll=10, batch=16, hidden=64, every=20)

    assert np.isfinite(losses).all()
    assert np.mean(losses[-10:]) < 0.75 * losses[0]
    assert "def " in capsys.readouterr().out


def test_eject_step_trains_without_jitgrad(capsys):
    losses = load("eject_step").main(width=4, rows=32, steps=60)

    assert losses[-1] < 0.5 * losses[0]
    assert "refused: the ejected module computes something else" in capsys.readouterr().out


def test_shallow_water_finds_where_the_wave_started(capsys):
    errors = load("shallow_water").main(size=24, steps=20, descents=40)

    assert errors[-1] < 0.05 * errors[0]
    place = capsys.readouterr().out.rsplit("highest point found at ", 1)[1]
    (row, column), (true_row, true_column) = ast.literal_eval(f"[{place.replace(' was at', '')}]")
    assert abs(row - true_row) <= 1
    assert abs(column - true_column) <= 1


def test_n_body_conserves_energy():
    assert load("n_body").main(bodies=60, rounds=6) < 1e-4


def test_burgers_pinn_learns():
    losses = load("burgers_pinn").main(steps=60, points=100, width=8, layers=2)

    assert np.mean(losses[-5:]) < 0.7 * losses[0]


def test_option_calibration_finds_the_smile(capsys):
    pytest.importorskip("scipy")
    option_calibration = load("option_calibration")

    assert option_calibration.main(strikes=500, noise=1e-6) == pytest.approx(option_calibration.TRUE, abs=1e-3)
    assert "eager: " in capsys.readouterr().out


def test_gaussian_process_explains_unseen_values():
    pytest.importorskip("scipy")
    pytest.importorskip("sklearn")

    assert load("gaussian_process").main(training=120, steps=15) > 0.3


def test_digits_vae_learns():
    pytest.importorskip("sklearn")

    losses = load("digits_vae").main(epochs=4)

    assert losses[-1] < 0.8 * losses[0]


def test_small_gpt_learns(capsys):
    losses = load("small_gpt").main(steps=30, context=12, batch=8, width=16, layers=1)

    assert np.mean(losses[-5:]) < 0.95 * losses[0]
    assert "Return the " in capsys.readouterr().out


def test_lstm_text_learns(capsys):
    losses = load("lstm_text").main(steps=30, window=8, batch=16, width=24, layers=1)

    assert np.mean(losses[-5:]) < 0.85 * losses[0]
    assert "Return the " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("shallow_water", {"size": 8, "steps": 3, "descents": 2}),
        ("n_body", {"bodies": 10, "rounds": 1}),
        ("burgers_pinn", {"steps": 2, "points": 10, "width": 4, "layers": 2}),
        ("option_calibration", {"strikes": 50}),
        ("digits_vae", {"epochs": 1}),
        ("gaussian_process", {"training": 20, "steps": 2}),
        ("lstm_text", {"steps": 2, "window": 4, "batch": 64, "width": 8, "layers": 1}),
    ],
)
def test_pictures_are_saved(name: str, sizes: dict[str, int], tmp_path: Path):
    for package in ("matplotlib", "scipy", "sklearn"):
        pytest.importorskip(package)
    picture = tmp_path / "picture.png"

    load(name).main(**sizes, picture=str(picture))

    assert picture.stat().st_size > 1000


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_are_run_above_and_use_public_names_only(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = [
        node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    ]

    parts = [name for name in imported if name.startswith("jitgrad.") and name != "jitgrad.numpy"]
    assert not parts, "only jitgrad, its numpy, nn and optim are public"
    assert not {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr[0] == "_"} - {"__file__"}
    assert f'load("{path.stem}")' in Path(__file__).read_text(encoding="utf-8")
