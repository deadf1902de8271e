"""Variables of comprehensions that have the name of a variable which inner functions share."""

from __future__ import annotations

from typing import Any

import jitgrad as jg

config = {"a": 2.0, "b": 3.0}


def shares_a_name(x: Any) -> Any:
    """From Python 3.12 on the comprehension's ``k`` lies where the function has the cell of its own."""
    functions = []
    for k in ("a", "b"):
        functions.append(lambda y: y * config[k])
    parts = [x * config[k] for k in ("a", "b")]
    return parts[0] + parts[1] + functions[0](x)


def test_a_change_is_seen_through_such_a_variable(monkeypatch) -> None:
    """Python 3.13.0 crashed while the observer read it."""
    compiled, x = jg.jit(shares_a_name, backend="python"), jg.ones(2)

    assert [compiled(x).tolist() for _ in range(3)] == [[8.0, 8.0]] * 3
    monkeypatch.setitem(config, "a", 10.0)
    assert compiled(x).tolist() == [16.0, 16.0]
    monkeypatch.setitem(config, "b", 1.0)
    assert compiled(x).tolist() == [12.0, 12.0]
    assert compiled.cache_info().traces == 3
