"""The notebook in examples/ runs from top to bottom, in Jupyter's kernel, and its stored outputs are those of its cells."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "tour.ipynb"


@pytest.fixture(scope="module")
def executed() -> Any:
    """The notebook after its cells ran; an exception in one of them is an error here."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # Jupyter's own, about event loops and sockets
        patch.setenv("PYTHONPATH", str(ROOT))
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return notebook


def texts(notebook: Any) -> list[str]:
    """What each cell of code printed or returned."""
    return [
        "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_it_shows_the_whole_way(executed: Any) -> None:
    result, comparison, explanation, kernel, gradient, counts, error, remedy = texts(executed)

    assert result.startswith("tensor(")
    assert "agrees with eager" in comparison
    assert "-> 1 steps, 1 fused" in explanation
    assert kernel.startswith("def kernel(") and "erfc" in kernel
    assert "-> 1 steps, 1 fused" in gradient
    assert "fallbacks=0" in counts
    assert "float() needs the value of an array" in error
    assert remedy.startswith("[")


def test_its_stored_kernel_is_the_one_that_it_makes(executed: Any) -> None:
    def kernel(notebook: Any) -> list[str]:
        return [line.split("#")[0] for line in texts(notebook)[3].splitlines()]

    assert kernel(nbformat.read(NOTEBOOK, as_version=4)) == kernel(executed)
