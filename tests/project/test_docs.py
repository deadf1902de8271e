"""The pages in docs/ hold: their programs run, their outputs are compared, their lists and words are those of the code.

After a change that is meant to show, ``pytest tests/project/test_docs.py --update-golden`` writes the outputs and tables anew.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import linecache
import re
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path

import pytest

import jitgrad as jg
from jitgrad.backends.cpu.backend import CpuTarget
from jitgrad.backends.targets import TARGETS
from jitgrad.compiler.pipeline import PASSES
from jitgrad.core import config
from jitgrad.ops.tables import ELEMENTWISE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)
# pages that show programs without being about to run them: other people's, or fragments
SHOWN_ONLY = {"PERFORMANCE.md"}


def run(code: str, page: Path, module: types.ModuleType) -> str:
    """What ``code`` prints; as far as Python knows it is a file named after the page."""
    name = f"{page.stem}.py"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), module.__dict__)
    return printed.getvalue().strip() + "\n"


def outputs(page: Path) -> list[tuple[str, str]]:
    """(what the page says, what its program prints) for every program with an output block."""
    module = types.ModuleType(f"docs_{page.stem}")
    sys.modules[module.__name__] = module
    found: list[tuple[str, str]] = []
    for match in PROGRAM.finditer(page.read_text(encoding="utf-8")):
        printed = run(match["code"], page, module)
        if match["output"] is not None:
            found.append((match["output"], printed))
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in SHOWN_ONLY], ids=lambda page: page.name)
def test_programs_print_what_the_page_says(page: Path, request: pytest.FixtureRequest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # one that has met no kernel yet: a kernel met before may show its literals as parameters
    monkeypatch.setitem(TARGETS, "cpu", CpuTarget())
    pairs = outputs(page)
    if request.config.getoption("--update-golden"):
        text = page.read_text(encoding="utf-8")
        for said, printed in pairs:
            text = text.replace(f"```text\n{said}```", f"```text\n{printed}```", 1)
        page.write_text(text, encoding="utf-8")
        return

    for said, printed in pairs:
        assert printed == said


def variables_table() -> str:
    rows = [f"| `{v.name}` | `{v.default}` | {v.doc} |" for v in config.VARIABLES.values()]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows]).replace("| `` |", "| |")


def test_table_of_variables_is_the_one_in_config(request: pytest.FixtureRequest):
    page = ROOT / "docs" / "env_vars.md"
    text = page.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        page.write_text(text[: text.index("| variable")] + variables_table() + "\n", encoding="utf-8")
        return

    assert text[text.index("| variable") :].strip() == variables_table()


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_files_of_the_package_that_pages_name_exist():
    for page in PAGES:
        for name in re.findall(r"`(?:jitgrad/)?((?:\w+/)+\w+\.py)`", page.read_text(encoding="utf-8")):
            assert (ROOT / name).exists() or (ROOT / "jitgrad" / name).exists(), f"{page.name}: {name}"


def test_architecture_names_every_folder_and_only_those():
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listing = text[text.index("## Rooms") :].split("```")[1]
    listed: list[str] = []
    for indent, name in re.findall(r"^( +)([a-z_]+)(?:/|\.py)", listing, re.MULTILINE):
        above = listed[-1].split("/")[: len(indent) // 2 - 1] if listed else []
        listed.append("/".join([*above, name]))
    package = ROOT / "jitgrad"
    folders = {str(path.parent.relative_to(package)) for path in package.rglob("__init__.py")} - {"."}

    assert sorted(listed) == sorted(folders | {"__main__"})


def test_list_of_passes_is_in_order():
    text = (ROOT / "docs" / "internals" / "passes.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [step.name for step in PASSES]


def names_in_the_package() -> set[str]:
    """Names of folders, files, classes, functions and variables."""
    names: set[str] = set()
    for path in (ROOT / "jitgrad").rglob("*.py"):
        names |= {path.stem, path.parent.name}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return names


def test_glossary_names_code_that_exists():
    text = (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
    named = re.findall(r"^\|.*\| `(\w+)` \|$", text, re.MULTILINE)

    assert named
    assert not set(named) - names_in_the_package()


# Words that the glossary replaces: as names in the code, or anywhere in the pages.
RETIRED = """
    lanewise leaving twin turn_shared_factors widen_halves spell_reductions spell_vector_products
    sink_permutations sum_terms_apart share_places crooked surroundings strips
""".split()


def test_retired_words_stay_away():
    words = re.compile(rf"\b(?:{'|'.join(RETIRED)})\b")
    files = [*(ROOT / "jitgrad").rglob("*.py"), *PAGES]
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in words.finditer(line)
    ]

    assert not lines


@pytest.mark.parametrize("page", [p for p in PAGES if not p.name.startswith("PERFORMANCE")], ids=lambda page: page.name)
def test_lines_of_prose_are_short(page: Path):
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 100 and not line.startswith("|")]

    assert not long


def call_of(name: str, function: Callable[..., jg.Tensor]) -> str:
    """``name``, with its parameters if any has a default."""
    shown, has_defaults = [], False
    for parameter in inspect.signature(function).parameters.values():
        default = "" if parameter.default is parameter.empty else f"={parameter.default}"
        has_defaults |= bool(default)
        if parameter.annotation.startswith("Literal"):
            default = "=" + parameter.annotation[8:-1].replace(", ", "|").replace("'", '"')
        shown.append(parameter.name + default)
    return f"{name}({', '.join(shown)})" if has_defaults else name


def elementwise_lists() -> dict[str, str]:
    """The lists of elementwise functions in the reference, by the words before each."""
    lists: dict[str, list[str]] = {"- Unary:": [], "- Binary/ternary:": [], "- Activations:": [], "- Elementwise:": []}
    for name, f in ELEMENTWISE.items():
        unary = [*f.__annotations__.values()].count("Operand") == 1
        words = "- Unary:" if unary else "- Binary/ternary:"
        words = "- Activations:" if f.__module__.endswith(".activations") else words
        lists["- Elementwise:" if name != f.__name__ else words].append(call_of(name, f) if name == f.__name__ else name)
    return {words: " ".join(calls) for words, calls in lists.items()}


@pytest.mark.parametrize("words", elementwise_lists())
def test_reference_lists_the_elementwise_functions(words: str, request: pytest.FixtureRequest):
    page = ROOT / "docs" / "API.md"
    text = page.read_text(encoding="utf-8")
    entry = textwrap.fill(f"{words} `{elementwise_lists()[words]}`", 100, subsequent_indent="  ", break_on_hyphens=False)
    if request.config.getoption("--update-golden"):
        page.write_text(re.sub(rf"^{re.escape(words)} `[^`]*`", lambda _: entry, text, flags=re.MULTILINE), encoding="utf-8")
        return

    assert f"{entry}\n" in text


def test_reference_lists_every_public_name():
    text = (ROOT / "docs" / "API.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", " ".join(re.findall(r"`([^`]*)`", text))))

    assert not set(jg.__all__) - named


def error_classes() -> list[type[Exception]]:
    """All public errors and warnings but the two base classes."""
    bases = (jg.errors.JitgradError, jg.errors.JitgradWarning)
    return [c for c in vars(jg.errors).values() if inspect.isclass(c) and issubclass(c, bases) and c not in bases]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_has_a_section_with_a_message_and_its_docstring_names_it(error: type[Exception]):
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    _, _, section = page.partition(f"\n### {error.__name__}\n")

    assert f"(docs/errors.md#{error.__name__.lower()})" in (error.__doc__ or "")
    assert f"{error.__name__}: " in re.split(r"\n##", section)[0], "its section shows no message"
