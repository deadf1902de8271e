"""What tests of the runtime share: a number of threads, and machine code for arrays of every size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit
from jitgrad.runtime.library import indexed_access


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = jg.get_num_threads()
    jg.set_num_threads(request.param)
    yield request.param
    jg.set_num_threads(before)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses machine code for reads and changes at indices of arrays of every size."""
    monkeypatch.setattr(indexed_access, "MIN_NUMPY_NS", 0)


@pytest.fixture
def fails_as_eager() -> Callable[..., None]:
    """Asserts that ``f(*args)``, of one line, raises the same IndexError eager and compiled, which names the line then."""

    def check(f: Callable[..., Any], *args: Any) -> None:
        with pytest.raises(IndexError) as eager:
            f(*args)
        with pytest.raises(IndexError) as compiled:
            jit(f, check="off")(*args)
        line = f"{f.__code__.co_filename}:{f.__code__.co_firstlineno}"
        assert str(compiled.value) == f"{eager.value} (in {line})"

    return check
