"""The text of a tensor has no elements in a trace: it may be printed, and must not decide or be computed with."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

OUTSIDE = jg.ones(3)
HOLDER = SimpleNamespace(weight=jg.ones(3))

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
    "outside": lambda x: x * len(repr(OUTSIDE)),
    "attribute": lambda x: x * (2.0 if "1" in f"{HOLDER.weight}" else 3.0),
}


@pytest.mark.parametrize("name", READ)
def test_reading_the_text_is_refused(name: str) -> None:
    with pytest.raises(UnguardableError, match=r"the text of a tensor f32\[3\] cannot be guarded.*printed or logged"):
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
