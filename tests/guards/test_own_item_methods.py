"""Containers whose classes have item methods of their own: guards read what is stored, and run none of these."""

from __future__ import annotations

from typing import Any

import pytest

import jitgrad as jg


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


class Scaled(list[float]):
    """Numbers times a factor."""

    factor = 1.0

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index) * self.factor

    def __iter__(self) -> Any:
        for number in super().__iter__():
            yield number * self.factor

    def __len__(self) -> int:
        return super().__len__() + 1


class Folded(dict[str, float]):
    """Keys in lower case."""

    def __getitem__(self, key: str) -> float:
        return super().__getitem__(key.lower())

    def __setitem__(self, key: str, value: float) -> None:
        super().__setitem__(key.lower(), value)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(str(key).lower())

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key.lower(), default)

    def values(self) -> Any:
        return [2 * value for value in super().values()]


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_list_that_computes_its_items(check: str) -> None:
    numbers = Scaled([1.0, 2.0])

    def function(x: Any) -> Any:
        for number in numbers:
            x = x + number
        return x * numbers[0] + len(numbers) + sum(numbers)

    compiled, x = jg.jit(function, check=check), jg.ones(2)
    changes = [
        lambda: None,
        lambda: setattr(numbers, "factor", 3.0),
        lambda: numbers.append(5.0),
        lambda: numbers.__setitem__(0, 7.0),
        lambda: setattr(numbers, "factor", 1.0),
    ]
    for change in changes:
        change()
        stored = list.__repr__(numbers)
        for _ in range(3):
            assert compiled(x).tolist() == function(x).tolist()
        assert list.__repr__(numbers) == stored

    assert compiled.cache_info().traces == len(changes)


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_dict_that_changes_its_keys(check: str) -> None:
    rates = Folded(a=2.0)

    def function(x: Any) -> Any:
        return x * rates["A"] + rates.get("B", 1.0) + ("C" in rates) + sum(rates.values())

    compiled, x = jg.jit(function, check=check), jg.ones(2)
    for key, value in (("A", 3.0), ("B", 4.0), ("C", 5.0), ("a", 6.0)):
        for _ in range(3):
            assert compiled(x).tolist() == function(x).tolist()
        rates[key] = value
    assert compiled(x).tolist() == function(x).tolist()
