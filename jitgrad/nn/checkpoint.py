"""Files of named tensors in the safetensors format: plain bytes, which are never executed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jitgrad.core.errors import CheckpointError, shown
from jitgrad.core.paths import require_folder
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.placement import move

_NEEDS_SAFETENSORS = "jg.save and jg.load need the package safetensors: pip install safetensors"


def save(tensors: Mapping[str, Any] | Module, path: str | os.PathLike[str]) -> None:
    """Write a mapping of names to tensors (a state_dict, or a Module's) to the file ``path``.

    The file appears complete or not at all: it is written beside ``path`` and renamed.

    Raises:
        CheckpointError: safetensors is not installed, or a value of the mapping is no tensor or
            array, or complex128.
        FileNotFoundError: there is no such folder.
    """
    state = tensors.state_dict() if isinstance(tensors, Module) else tensors
    if not isinstance(state, Mapping):
        raise CheckpointError(f"save: expected a module or a dict of tensors such as a state_dict, got {shown(state)}")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, (Tensor, np.ndarray)):
            raise CheckpointError(f"save: {name!r} is of class {type(tensor).__name__}; expected a name and a tensor or array")
        # the writer copies raw memory, so it must be in row-major order
        arrays[name] = np.asarray(move(detached(asarray(tensor)), "cpu").numpy(), order="C")
        if arrays[name].dtype == np.complex128:
            raise CheckpointError(f"save: {name!r} is complex128, which safetensors files do not have: save .real and .imag")
    try:
        from safetensors.numpy import save as encode
    except ImportError:
        raise CheckpointError(_NEEDS_SAFETENSORS) from None
    require_folder("save", path)
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(encode(arrays))
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors in the file ``path`` by name, for ``Module.load_state_dict``.

    Raises:
        CheckpointError: safetensors is not installed, or the file is no complete safetensors file.
        FileNotFoundError: there is no such file.
        IsADirectoryError: it is a folder.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load as decode
    except ImportError:
        raise CheckpointError(_NEEDS_SAFETENSORS) from None
    data = Path(path).read_bytes()
    try:
        arrays = decode(data)
    except (SafetensorError, KeyError, ValueError) as error:
        saved_by = "; it is one of torch.save: write it with safetensors.torch.save_file" if data[:2] == b"PK" else ""
        raise CheckpointError(f"load: {os.fspath(path)} is no complete safetensors file: {error}{saved_by}") from None
    return {name: Tensor(np.array(array)) for name, array in arrays.items()}
