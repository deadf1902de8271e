"""The compiler's tests run on the python backend unless marked otherwise."""

from tests.compiled import backend, same, steps_of, tune

__all__ = ["backend", "same", "steps_of", "tune"]
