"""Containers of results as Python text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, MutableMapping, Sequence
from types import SimpleNamespace
from typing import Any

import optree

from jitgrad.core.errors import EjectError
from jitgrad.eject.function_source import literal_text


class _Leaf(str):
    """The text of a leaf, told from strings that are keys."""

    __slots__ = ()


def container_text(
    treedef: Any, leaves: Sequence[str], classes: MutableMapping[str, str]
) -> str:
    """An expression for the containers ``treedef`` around ``leaves``.

    ``classes`` gets the definition of each class of named tuples, by its name.

    Raises:
        EjectError: for containers that Python has no notation for.
    """
    return _text(optree.tree_unflatten(treedef, [_Leaf(x) for x in leaves]), classes)


def _text(tree: Any, classes: MutableMapping[str, str]) -> str:
    if isinstance(tree, _Leaf):
        return str(tree)
    if tree is None:
        return "None"
    if isinstance(tree, Mapping):
        pairs = []
        for key, x in tree.items():
            text = literal_text(key)
            if text is None:
                raise EjectError(f"eject: the result has a dict with the key {key!r}; numbers and strings can be written down")
            pairs.append(f"{text}: {_text(x, classes)}")
        return f"{{{', '.join(pairs)}}}"
    if dataclasses.is_dataclass(tree) or isinstance(tree, SimpleNamespace):
        classes["SimpleNamespace"] = "from types import SimpleNamespace"
        return f"SimpleNamespace({', '.join(f'{k}={_text(x, classes)}' for k, x in vars(tree).items())})"
    if not isinstance(tree, Sequence):
        raise EjectError(
            f"eject: the result contains a {type(tree).__name__}, which a module without jitgrad cannot make: return its "
            "parts as a tuple or a dict"
        )
    parts = [_text(x, classes) for x in tree]
    if optree.is_namedtuple(tree):
        name = type(tree).__name__
        classes[name] = f"{name} = namedtuple({name!r}, {list(optree.namedtuple_fields(tree))!r})"
        return f"{name}({', '.join(parts)})"
    if isinstance(tree, tuple):
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"[{', '.join(parts)}]"
