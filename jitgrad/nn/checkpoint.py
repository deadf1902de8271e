"""Files of named tensors in the safetensors format: plain bytes, which are never executed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from jitgrad.core.errors import ArgumentError, CheckpointError, shown
from jitgrad.core.paths import require_folder
from jitgrad.core.tensor import Tensor
from jitgrad.nn.checkpoint_tree import put_together, taken_apart
from jitgrad.nn.module import Module
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.placement import move

_DESCRIPTION = "jitgrad"  # the entry of the file's header that describes what was saved, if that is more than tensors
_NEEDS_SAFETENSORS = "jg.save and jg.load need the package safetensors: pip install safetensors"


def save(tensors: Any, path: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a mapping of names to tensors (a state_dict, or a Module's) to the file ``path``.

    Dicts and lists of such mappings, tensors, numbers and texts are written as well, with a text in the
    file that describes them: ``{"model": model.state_dict(), "epoch": 3}``.
    The file appears complete or not at all: it is written beside ``path`` and renamed. ``path`` may also be an open
    binary file, such as io.BytesIO.

    Raises:
        CheckpointError: safetensors is not installed, or there is an object of another kind, or a
            tensor is complex128.
        FileNotFoundError: there is no such folder.
    """
    state = tensors.state_dict() if isinstance(tensors, Module) else tensors
    text = None
    if not isinstance(state, Mapping | list | tuple | Tensor | np.ndarray):
        raise CheckpointError(f"save: expected a module or a dict of tensors such as a state_dict, got {shown(state)}")
    if not isinstance(state, Mapping) or not all(map(_is_named_tensor, state.items())):
        state, text = taken_apart(state)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, tensor in state.items():
        # the writer copies raw memory, so it must be in row-major order
        arrays[name] = np.asarray(move(detached(asarray(tensor)), "cpu").numpy(), order="C")
        if arrays[name].dtype == np.complex128:
            raise CheckpointError(f"save: {name!r} is complex128, which safetensors files do not have: save .real and .imag")
    try:
        from safetensors.numpy import save as encode
    except ImportError:
        raise CheckpointError(_NEEDS_SAFETENSORS) from None
    data = encode(arrays, None if text is None else {_DESCRIPTION: text})
    if isinstance(path, str | os.PathLike):
        _write_whole(data, path)
    else:
        path.write(data)


def _write_whole(data: bytes, path: str | os.PathLike[str]) -> None:
    require_folder("save", path)
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _is_named_tensor(item: tuple[Any, Any]) -> bool:
    return isinstance(item[0], str) and isinstance(item[1], Tensor | np.ndarray)


def load(
    path: str | os.PathLike[str] | IO[bytes], map_location: Any = None, *, device: Any = None, weights_only: bool = True
) -> Any:
    """The tensors in the file ``path`` by name, for ``Module.load_state_dict``, or what else `save` was given.

    ``path`` may also be an open binary file, such as io.BytesIO.

    A module takes them over to where its own tensors are, whatever ``device`` is.

    Args:
        map_location: torch's name for ``device``.
        device: on which the tensors shall be, "cpu" or "cuda"; a file does not say where they were.
        weights_only: changes nothing, as nothing in a file is ever executed.

    Raises:
        ArgumentError: there is no such device, or ``device`` and ``map_location`` are two.
        CheckpointError: safetensors is not installed, or the file is no complete safetensors file.
        FileNotFoundError: there is no such file.
        IsADirectoryError: it is a folder.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load as decode
    except ImportError:
        raise CheckpointError(_NEEDS_SAFETENSORS) from None
    device = _chosen_device(device, map_location)
    data = Path(path).read_bytes() if isinstance(path, str | os.PathLike) else path.read()
    try:
        arrays = decode(data)
    except (SafetensorError, KeyError, ValueError) as error:
        saved_by = "; it is one of torch.save: write it with safetensors.torch.save_file" if data[:2] == b"PK" else ""
        name = path if isinstance(path, str | os.PathLike) else shown(path)
        raise CheckpointError(f"load: {name} is no complete safetensors file: {error}{saved_by}") from None
    tensors = {name: Tensor(np.array(array)) for name, array in arrays.items()}
    if device is not None:
        tensors = {name: move(tensor, device) for name, tensor in tensors.items()}
    text = (json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}).get(_DESCRIPTION)
    return tensors if text is None else put_together(tensors, text)


def _chosen_device(device: Any, map_location: Any) -> Any:
    """The device that one of the two arguments of `load` names."""
    if device is None or map_location is None or str(device) == str(map_location):
        return map_location if device is None else device
    raise ArgumentError(f"load: device={device!r} and map_location={map_location!r} name two places: give one of them")
