"""The control code that the package brings along is what the translator writes."""

from __future__ import annotations

import platform

import pytest

from jitgrad.backends import array_memory
from jitgrad.backends.llvm import stored_control_code
from jitgrad.backends.llvm.stored_control_code import control_code, file_of, first_line, stored, translated
from jitgrad.runtime.executor.instruction_loop import loop_source
from jitgrad.runtime.executor.tiled_products import product_source

CODE = {
    "loop": (loop_source(), "loop", "thread_pool"),
    "f32 product": (product_source("f32"), "product", "f32"),
    "f64 product": (product_source("f64"), "product", "f64"),
    "find": (array_memory._FIND, "find", "thread_pool"),
    "keep": (array_memory._KEEP, "keep", "thread_pool"),
}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the files are for x86 CPUs")
@pytest.mark.parametrize("name", CODE)
def test_files_are_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    source, entry, library = CODE[name]
    expected = translated(source, entry, library)
    if request.config.getoption("--update-golden"):
        file_of(entry, library).write_text(f"{first_line(source)}\n{expected}", encoding="utf-8")

    assert stored(source, entry, library) == expected


def test_no_file_is_left_over() -> None:
    assert {*stored_control_code.FOLDER.iterdir()} == {file_of(entry, library) for _, entry, library in CODE.values()}


def test_changed_source_is_translated() -> None:
    source = "def find(first, start, stop):\n    first[0] = 1\n"

    assert stored(source, "find", "thread_pool") is None
    assert control_code(source, "find", "thread_pool") == translated(source, "find", "thread_pool")
