"""Dicts and lists of tensors and plain values as named tensors and one text, which is JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitgrad.core.errors import CheckpointError
from jitgrad.core.tensor import Tensor

_PLAIN = (bool, int, float, str)


def taken_apart(tree: Any) -> tuple[dict[str, Any], str]:
    """The tensors of ``tree`` by the paths to them, and the text for `put_together`.

    Raises CheckpointError for an object that is no tensor, array, number, text, None, dict, list or tuple.
    """
    tensors: dict[str, Any] = {}

    def described(part: Any, path: str) -> Any:
        if isinstance(part, Tensor | np.ndarray):
            name = path if path not in tensors else f"{path}#{len(tensors)}"
            tensors[name] = part
            return {"tensor": name}
        if isinstance(part, Mapping):
            return {"dict": [[described(k, f"{path}.keys"), described(v, _below(path, k))] for k, v in part.items()]}
        if isinstance(part, list | tuple):
            kind = "list" if isinstance(part, list) else "tuple"
            return {kind: [described(x, _below(path, k)) for k, x in enumerate(part)]}
        if isinstance(part, np.generic):
            return described(part.item(), path)
        if part is None or type(part) in _PLAIN:
            return part
        raise CheckpointError(
            f"save: {path or 'the object'} is of class {type(part).__name__}; files hold tensors, arrays, numbers, texts, "
            "None, and dicts, lists and tuples of them: save its parts, such as vars(x)"
        )

    return tensors, json.dumps(described(tree, ""))


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def put_together(tensors: Mapping[str, Tensor], text: str) -> Any:
    """What `taken_apart` was given. Raises CheckpointError for a text that it did not write."""

    def made(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        ((kind, content),) = part.items()
        if kind == "tensor":
            return tensors[content]
        if kind == "dict":
            return {made(k): made(v) for k, v in content}
        return tuple(map(made, content)) if kind == "tuple" else list(map(made, content))

    try:
        return made(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"load: the description of the saved object is damaged: {error!r}") from None
