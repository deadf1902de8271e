"""Renders the explanation, kernels and graphs of a compiled function as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from jitgrad.core.origin import Origin
from jitgrad.core.paths import require_folder
from jitgrad.inspect.explain import Explanation, StepReport
from jitgrad.inspect.kernels import KernelView, kernel_views
from jitgrad.inspect.memory import ops_by_line
from jitgrad.inspect.origins import lines_text
from jitgrad.inspect.stages import stages
from jitgrad.inspect.traffic import readable_bytes
from jitgrad.jit.executable import Executable

LIGHT, DARK = "friendly", "github-dark"  # colour schemes of pygments


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of a step table: the number of its kernel, and its bytes in % of the largest step's."""

    step: StepReport
    lines: str
    kernel: int | None
    share: float


@dataclass(frozen=True, slots=True)
class _Section:
    """One program with its table."""

    title: str
    explanation: Explanation
    rows: list[_Row]
    recomputed: str


def write_report(path: str | os.PathLike[str], compiled: Executable, explanation: Explanation) -> None:
    """Write the report on ``compiled`` to ``path``: HTML with inline style, without scripts or other files."""
    require_folder("report", path)
    text = render_page(compiled, explanation)
    Path(path).write_text(text, encoding="utf-8")


def render_page(compiled: Executable, explanation: Explanation) -> str:
    """The report as HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    kernels = kernel_views(compiled)
    programs = [e for e in (explanation, explanation.backward) if e is not None]
    titles = ["Program"] if len(programs) == 1 else ["Forward", "Backward"]
    first = 0
    sections = []
    for title, program in zip(titles, programs, strict=True):
        sections.append(_Section(title, program, _rows(program, first), ops_by_line(program.recomputed)))
        first += program.fused
    return environment.get_template("report.html").render(
        name=explanation.name,
        sections=sections,
        kernels=[(k, view, _highlighted(view), lines_text(view.origins)) for k, view in enumerate(kernels)],
        graphs=[(name, _graph_markup(str(graph))) for name, graph in stages(compiled).items()],
        colours=_colours(),
        bytes=readable_bytes,
        where=_files(kernels),
    )


def _rows(program: Explanation, first_kernel: int) -> list[_Row]:
    most = max([1, *(s.bytes_read + s.bytes_written for s in program.steps)])
    rows = []
    for step in program.steps:
        kernel = first_kernel if step.kind == "fused" else None
        first_kernel += step.kind == "fused"
        share = 100 * (step.bytes_read + step.bytes_written) / most
        rows.append(_Row(step, lines_text(step.origins), kernel, share))
    return rows


def _files(kernels: Sequence[KernelView]) -> list[str]:
    """The user's files that the kernels come from."""
    origins: list[Origin] = [o for view in kernels for o in view.origins if o.line]
    return list(dict.fromkeys(o.file for o in origins))


def _highlighted(view: KernelView) -> Markup:
    return Markup(highlight(view.source, PythonLexer(), HtmlFormatter(nowrap=True)))  # pygments escapes the text


def _graph_markup(text: str) -> Markup:
    """A graph with its comments, the user's lines, in another colour."""
    lines = []
    for line in text.splitlines():
        code, mark, comment = line.partition("  # ")
        note = Markup('  <span class="c1"># {}</span>').format(comment) if mark else Markup()
        lines.append(Markup("{}{}").format(code, note))
    return Markup("\n").join(lines)


def _colours() -> Markup:
    light = HtmlFormatter(style=LIGHT).get_style_defs("pre")
    dark = HtmlFormatter(style=DARK).get_style_defs("pre")
    return Markup(f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}")
