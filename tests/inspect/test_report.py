"""report: one self-contained HTML file."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

import jitgrad as jg
from tests.memory_budget.programs import mlp

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Checks that tags are balanced; collects texts, ids and references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            if name in ("href", "src"):
                self.references.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def array(*shape: int, grad: bool = False) -> jg.Tensor:
    return jg.tensor(np.ones(shape, "f4"), requires_grad=grad)


def page(tmp_path: Path, f, *args, **options) -> Page:
    path = tmp_path / "report.html"
    f.report(path, *args, **options)
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_needs_no_other_file(tmp_path: Path):
    found = page(tmp_path, jg.jit(lambda x, w: jg.tanh(x @ w).sum()), array(3, 3), array(3, 3, grad=True))

    assert not found.tags & {"script", "link", "img", "iframe"}
    assert found.references and all(r.startswith("#") and r[1:] in found.ids for r in found.references)
    assert "url(" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_it_shows_kernels_steps_reasons_and_graphs(tmp_path: Path):
    def loss(x, w):
        return jg.tanh(x @ w).sum()

    f, args = jg.jit(loss), (array(3, 3), array(3, 3, grad=True))
    found = page(tmp_path, f, *args)

    for kernel in f.kernels(*args):
        assert kernel.source.rstrip("\n") in found.text
    for graph in (f.graph(*args), f.graph(*args, stage="backward.fuse")):
        assert str(graph) in found.text
    for heading in ("Forward", "Backward", "Kernels", "Graphs", "Why neighbours were not fused"):
        assert heading in found.text
    assert "it is a library call" in found.text


def test_names_are_escaped(tmp_path: Path):
    f = jg.jit(lambda x: x < 0)

    found = page(tmp_path, f, array(3))

    assert f.name == "<lambda>"
    assert "<lambda>" in found.text
    assert "lambda" not in found.tags


def test_measured_times_are_in_the_table(tmp_path: Path):
    f = jg.jit(lambda x: x + 1)

    assert not re.search(r"\d µs", page(tmp_path, f, array(3)).text)
    assert re.search(r"\d µs", page(tmp_path, f, array(3), measure=True).text)


def test_a_function_without_kernels_says_so(tmp_path: Path):
    found = page(tmp_path, jg.jit(lambda x, y: x @ y), array(3, 3), array(3, 3))

    assert "nothing in this function can be fused" in found.text


def test_a_memory_budget_and_what_it_costs(tmp_path: Path):
    program = mlp(layers=8, batch=64)
    f = jg.jit(program.step, memory_budget=0.8)
    text = page(tmp_path, f, *program.args).text
    budget = f.explain(*program.args).budget

    assert budget is not None and budget.steps
    for line in budget.lines():
        assert line[0].upper() + line[1:] in text
    assert "Memory budget" not in page(tmp_path, jg.jit(program.step), *program.args).text
