"""Arithmetic of number arguments in which Python raises an error, or gives a complex number, for some values.

``k / n`` is computed by the program, which divides like NumPy: by zero it gives inf. Python raises ZeroDivisionError there. So
each call computes such numbers in Python as well, before the program runs: it is right for calls in which Python gives floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

_LONGEST = 300  # characters of an expression; one of more, such as a product in a loop, is not followed
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
RAISING = frozenset(["truediv", "floordiv", "mod", "pow"])


def text_of(name: str, x: str, y: str) -> str:
    """The expression of Python's function ``name`` of two others; "" if one is not known, or all is too long."""
    text = f"({x} {_SYMBOLS[name]} {y})"
    return text if x and y and len(text) <= _LONGEST else ""


@dataclass(frozen=True, eq=False, slots=True)
class NumberCondition:
    """Whether Python gives floats for ``text``, an expression of the flat arguments at ``positions``, named ``a3`` and so on."""

    text: str
    positions: tuple[int, ...]
    holds: bool
    compute: Callable[..., Any]

    @classmethod
    def of(cls, texts: Sequence[str], positions: frozenset[int], holds: bool) -> NumberCondition:
        ordered = tuple(sorted(positions))
        listed = ", ".join(f"float({text})" for text in texts)
        source = f"lambda {', '.join(f'a{k}' for k in ordered)}: ({listed},)"
        return cls(listed, ordered, holds, eval(source, {"inf": inf, "nan": nan}))

    def is_met(self, *numbers: Any) -> bool:
        """Whether a call with these ``numbers`` computes as the traced one."""
        try:
            self.compute(*numbers)
        except (ArithmeticError, TypeError):  # TypeError: a complex number
            return not self.holds
        return self.holds


class NumberConditions:
    """The expressions of one trace, and whether Python gives floats in the call that is traced."""

    def __init__(self) -> None:
        self.leaves: Sequence[Any] | None = None  # the flat arguments of that call; None in a trace within it
        self._known: dict[str, tuple[frozenset[int], bool]] = {}

    def compute(self, text: str, positions: frozenset[int]) -> Any:
        """What ``text`` is in the call; None where that is not known. Raises the error that Python raises."""
        if self.leaves is None:
            return None
        names = {f"a{k}": self.leaves[k] for k in positions}
        try:
            number = eval(text, {"inf": inf, "nan": nan}, names)
        except ArithmeticError:
            self._known[text] = positions, False
            raise
        self._known[text] = positions, True
        return number

    def listed(self) -> tuple[NumberCondition, ...]:
        """One condition for all floats, without expressions that are part of another, and one for each error."""
        floats = {text: positions for text, (positions, holds) in self._known.items() if holds}
        outer = [text for text in floats if not any(text in other for other in floats if other != text)]
        positions = frozenset[int]().union(*floats.values())
        errors = [NumberCondition.of([text], where, False) for text, (where, holds) in self._known.items() if not holds]
        return (*([NumberCondition.of(outer, positions, True)] if outer else []), *errors)
