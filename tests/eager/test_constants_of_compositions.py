"""What a composition computes of constants alone is computed once, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd.lines import Line
from jitgrad.core.errors import IndexingError
from jitgrad.eager.compositions import composed
from jitgrad.nn import functional as F


@pytest.mark.parametrize(("n", "kept"), [(30, True), (300, False)])
def test_what_depends_on_no_operand_is_computed_once_and_kept_if_small(
    n: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[list[str]] = []
    write = Line.function

    def noted(line: Line, head: str, result: str) -> Callable[..., Any]:
        texts.append(line.text)
        return write(line, head, result)

    monkeypatch.setattr(Line, "function", noted)
    x = np.sin(np.arange(n * n)).reshape(n, n)
    for _ in range(5):
        assert np.array_equal(jg.tril(jg.tensor(x), 1).numpy(), np.tril(x, 1))
    assert [len(text) == 1 for text in texts] == [kept]


def test_a_result_that_depends_on_no_operand_is_a_new_array() -> None:
    f = composed(lambda x: jg.zeros(x.shape) + 2.0)
    x = jg.ones(3)
    for _ in range(6):
        y = f(x)
        assert y.tolist() == [2.0, 2.0, 2.0]
        y.fill_(7.0)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_one_hot_of_other_classes(dtype: Any) -> None:
    for k in range(6):
        labels = (np.arange(6).reshape(2, 3) + k) % 5
        assert np.array_equal(F.one_hot(jg.tensor(labels), 5).numpy(), np.eye(5, dtype=np.int64)[labels])
        assert jg.one_hot(jg.tensor(labels), 5, dtype=dtype).dtype == dtype
    with pytest.raises(IndexingError, match="not in"):
        F.one_hot(jg.tensor(labels), 4)
