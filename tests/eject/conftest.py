"""The fixtures of the tests of ejected modules."""

from __future__ import annotations

from tests.eject.ejecting import eject, in_python

__all__ = ["eject", "in_python"]
