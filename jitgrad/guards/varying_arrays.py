"""Arrays that a guard saw change: programs read their contents on every call instead of relying on them."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

_changed: weakref.WeakValueDictionary[int, np.ndarray[Any, Any]] = weakref.WeakValueDictionary()  # by id


def note_change(array: np.ndarray[Any, Any]) -> None:
    """The contents of ``array`` are others than in an earlier call."""
    _changed[id(array)] = array


def has_changed(array: np.ndarray[Any, Any]) -> bool:
    """Whether the contents of ``array`` have changed from one call to another."""
    return _changed.get(id(array)) is array
