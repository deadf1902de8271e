"""The text of a tensor has no elements in a trace: it may be printed, and must not decide or be computed with."""

from __future__ import annotations

import io
import logging
import textwrap
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import EffectWarning, UnguardableError

OUTSIDE = jg.ones(3)
HOLDER = SimpleNamespace(weight=jg.ones(3))



def sort_by_text(tensors: list[Any]) -> list[Any]:
    tensors.sort(key=str)
    return tensors


def printed(x: Any) -> str:
    file = io.StringIO()
    print(x, file=file)
    return file.getvalue()


def written(text: str) -> str:
    file = io.StringIO()
    file.write(text)
    return file.getvalue()


READ: dict[str, Callable[[Any], Any]] = {
    "length": lambda x: x * len(repr(x)),
    "contained": lambda x: x * (2.0 if "1" in str(x) else 3.0),
    "format string": lambda x: x * len(f"value {x}"),
    "with a specification": lambda x: x * len(f"{x!r:>50}"),
    "compared": lambda x: x if f"{x}" == "1" else -x,
    "method of the text": lambda x: x * (2.0 if str(x).startswith("tensor([1") else 3.0),
    "percent": lambda x: x * len("%s" % x),  # noqa: UP031
    "percent of several": lambda x: x * len("%s %s" % (x.shape, x)),  # noqa: UP031
    "format method": lambda x: x * len("{}".format(x)),  # noqa: UP032
    "length of a result": lambda x: x * len(str(x.sum())),
    "format string of a result": lambda x: x * len(f"{x.sum()}"),
    "percent of a result": lambda x: x * len("%s" % x.sum()),  # noqa: UP031
    "method of a result": lambda x: x * len((x + 1.0).__repr__()),
    "joined": lambda x: x * len("".join([f"{x.sum()}", "!"])),
    "joined by a loop of C code": lambda x: x * len(", ".join(map(str, [x, x + 1.0]))),
    "sorted": lambda x: sorted([x.sum() * 3.0, x.sum()], key=repr)[0],
    "sorted in place": lambda x: sort_by_text([x.sum() * 3.0, x.sum()])[0],
    "smallest": lambda x: min([x.sum() * 3.0, x.sum()], key=str),
    "loop over texts": lambda x: x * sum(len(text) for text in map(str, [x, x + 1.0])),
    "unpacked": lambda x: x * len([*map(str, [x, x + 1.0])][1]),
    "key of a dict": lambda x: x * {f"{x.sum()}": 1.0}.get("tensor(3., dtype=float32)", 2.0),
    "in a set": lambda x: x * len({str(x.sum()), "tensor(3., dtype=float32)"}),
    "file in memory": lambda x: x * len(printed(x)),
    "written to a file in memory": lambda x: x * len(written(repr(x.sum()))),
    "returned": lambda x: (x, f"{x.sum()}"),
    "returned in a list": lambda x: (x, [str(x), "a"]),
    "returned text of a list": lambda x: (x, str([x])),
    "outside": lambda x: x * len(repr(OUTSIDE)),
    "attribute": lambda x: x * (2.0 if "1" in f"{HOLDER.weight}" else 3.0),
}


@pytest.mark.parametrize("name", READ)
def test_reading_the_text_is_refused(name: str) -> None:
    with pytest.raises(UnguardableError, match=r"the text of a tensor f32\[3?\] cannot be guarded.*printed or logged"):
        jg.jit(READ[name], backend="python")(jg.ones(3))


def test_printing_logging_and_messages_of_errors_are_not() -> None:
    def function(x: Any) -> Any:
        print(x, f"{x}", str(x), file=io.StringIO())
        logging.getLogger("texts").debug("%s", x)
        logging.getLogger("texts").debug(f"{x} of {x.shape}")
        if x.shape != (3,):
            raise ValueError(f"expected three numbers, got {x}")
        return x * len(f"{x.shape} {x.dtype}")

    with pytest.warns(UserWarning, match="print"):
        assert jg.jit(function, backend="python")(jg.ones(3)).tolist() == function(jg.ones(3)).tolist()


STORED: list[Any] = []
TABLE: dict[str, Any] = {}


def append(x: Any) -> Any:
    STORED.append(str(x))
    return x


def put(x: Any) -> Any:
    TABLE["loss"] = f"{x.sum()}"
    return x


def assign(x: Any) -> Any:
    HOLDER.text = textwrap.fill(repr(x * 2.0))
    return x


def caught(x: Any) -> Any:
    try:
        raise ValueError(f"{x.sum()}")
    except ValueError as error:
        return x, str(error)


@pytest.mark.parametrize("function", [append, put, assign, caught])
def test_a_text_that_leaves_the_function_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(UnguardableError, match="the text of a tensor"):
        jg.jit(function, backend="python")(jg.ones(3))
    assert STORED == [] and TABLE == {} and not hasattr(HOLDER, "text")


def test_the_message_names_the_line_of_the_text() -> None:
    def function(x: Any) -> Any:
        first = sorted([x.sum(), x.max()], key=repr)
        return first[0]

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(UnguardableError, match=rf"test_texts_of_tensors.py:{line}: the text"):
        jg.jit(function, backend="python")(jg.ones(3))


LOG = logging.getLogger("texts.written")
LOG.addHandler(logging.StreamHandler(io.StringIO()))
LOG.propagate = False
FILE = io.StringIO()


@pytest.mark.parametrize(
    ("write", "what"),
    [
        (lambda x: LOG.warning("loss %s", x), "warning"),
        (lambda x: LOG.error(f"loss {x.sum()}"), "error"),
        (lambda x: FILE.write(str(x)), "write"),
        (lambda x: print(x.sum(), file=FILE), "print"),
    ],
)
def test_what_is_written_only_in_the_trace_is_a_warning(write: Callable[[Any], Any], what: str) -> None:
    def function(x: Any) -> Any:
        write(x)
        return x * 2.0

    with pytest.warns(EffectWarning, match=rf"only when it is traced.*{what} \(test_texts"):
        jg.jit(function, backend="python")(jg.ones(3))


def test_what_a_logger_does_not_write_is_no_effect() -> None:
    def function(x: Any) -> Any:
        LOG.debug("loss %s", x.sum())
        return x * 2.0

    LOG.setLevel(logging.WARNING)
    assert jg.jit(function, backend="python")(jg.ones(3)).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("text", ["loss is {0}", "no loss"])
def test_an_error_with_the_text_of_a_tensor_says_where_its_elements_are(text: str) -> None:
    def function(x: Any) -> Any:
        raise ValueError(text.replace("{0}", f"{x.sum()}"))

    with pytest.raises(ValueError, match="loss") as caught:
        jg.jit(function, backend="python")(jg.ones(3))
    notes = getattr(caught.value, "__notes__", [])
    assert any(".eager(...)" in note for note in notes) == (text == "loss is {0}")
