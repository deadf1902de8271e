"""Compiled kernels on disk, by content: object code and source, checksummed, in a folder private to
the user.

One file per kernel, ``<key>.kernel``: a magic line, the SHA-256 of key and rest, a JSON header
line, the source, the object code. Files appear complete or not at all (written aside, then
renamed), so no lock is needed: two processes that store the same key store the same bytes. Nothing
is unpickled. Whatever is wrong with a file or the folder costs a compilation and a `CacheWarning`,
never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from jitgrad.core import config
from jitgrad.core.errors import CacheWarning
from jitgrad.core.origin import users_frame

MAX_BYTES = 256 << 20  # some 60,000 kernels
_MAGIC = b"jitgrad kernel 1\n"
_SUFFIX = ".kernel"
_ABANDONED_AFTER = 3600.0  # seconds: a temporary file this old has lost its writer
_HASH_BYTES = 32
_EVICTING_PREFIX = "0"  # keys are hex digests: one store in 16 pays for listing the folder


@dataclass(frozen=True, slots=True)
class Stored:
    """A kernel on disk: its source, its object code, and the C symbols that it refers to."""

    source: str
    object_code: bytes
    externals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """One file of the cache; ``modified`` in seconds since the epoch."""

    key: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class DiskCacheInfo:
    """The state of the cache; ``problem`` says why it is not used, or is empty."""

    directory: Path
    entries: int
    size: int
    max_size: int
    problem: str


def directory() -> Path:
    """The folder of the cache: JITGRAD_CACHE_DIR, else the user's cache folder."""
    chosen = config.read("JITGRAD_CACHE_DIR")
    return Path(chosen or platformdirs.user_cache_dir("jitgrad", appauthor=False)) / "kernels"


def _problem(folder: Path) -> str:
    """Why ``folder`` (made if missing) must not be used: code in it would be run as the user."""
    try:
        _make_private(folder)
        status = folder.lstat()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is not a folder"
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            return f"{folder} belongs to another user"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"{folder} can be written by other users (chmod 700 makes it private)"
        if (parent := _replaceable_parent(folder)) is not None:
            return (
                f"other users can write {parent}, and so replace the folder {folder} in it; "
                f"'chmod go-w {parent}' prevents it, or set JITGRAD_CACHE_DIR to a folder of your own"
            )
    return ""


def _make_private(folder: Path) -> None:
    """Make ``folder`` and its missing parents for the user alone, whatever the umask."""
    missing = [folder, *folder.parents]
    missing = missing[: next((k for k, path in enumerate(missing) if path.exists()), 0)]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def _replaceable_parent(folder: Path) -> Path | None:
    """A folder above ``folder`` in which other users can rename entries; not one with a sticky bit.

    Symbolic links count as well as what they lead to.
    """
    for parent in dict.fromkeys([*folder.absolute().parents, *folder.resolve().parents]):
        mode = parent.stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
            return parent
    return None


def _usable() -> Path | None:
    folder = directory()
    problem = _problem(folder)
    if problem:
        warnings.warn(f"kernels are not cached: {problem}", CacheWarning, stacklevel=users_frame())
        return None
    return folder


def _encode(key: str, entry: Stored) -> bytes:
    source = entry.source.encode()
    header = {"source": len(source), "object": len(entry.object_code), "externals": list(entry.externals)}
    body = json.dumps(header).encode() + b"\n" + source + entry.object_code
    return _MAGIC + hashlib.sha256(key.encode() + body).digest() + body


def _decode(key: str, raw: bytes) -> Stored:
    """The entry in ``raw``. Raises ValueError, naming what is wrong."""
    start = len(_MAGIC) + _HASH_BYTES
    if not raw.startswith(_MAGIC):
        raise ValueError("it is not a kernel of this version")
    body = raw[start:]
    if hashlib.sha256(key.encode() + body).digest() != raw[len(_MAGIC) : start]:
        raise ValueError("its checksum is wrong")
    line, _, rest = body.partition(b"\n")
    header = json.loads(line)
    end = header["source"]
    return Stored(rest[:end].decode(), rest[end:], tuple(header["externals"]))


def load_entry(key: str) -> Stored | None:
    """The entry of ``key``; None if there is none, or, with a `CacheWarning`, if it is damaged."""
    folder = _usable()
    if folder is None:
        return None
    path = folder / (key + _SUFFIX)
    try:
        return _decode(key, path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warnings.warn(f"{path} is compiled again: {error}", CacheWarning, stacklevel=users_frame())
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def store_entry(key: str, entry: Stored) -> bool:
    """Keep ``entry`` under ``key``; False, with a `CacheWarning`, if the disk does not let us."""
    folder = _usable()
    if folder is None:
        return False
    try:
        _write(folder, folder / (key + _SUFFIX), _encode(key, entry))
        if key.startswith(_EVICTING_PREFIX):
            _evict(folder)
    except OSError as error:
        warnings.warn(f"kernels are not cached: {folder}: {error.strerror}", CacheWarning, stacklevel=users_frame())
        return False
    return True


def _write(folder: Path, path: Path, raw: bytes) -> None:
    """Write ``path`` so that readers see all of it or nothing."""
    descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _files(folder: Path, suffix: str) -> Iterator[tuple[Path, os.stat_result]]:
    """Files with ``suffix``; one that another process removes meanwhile is left out."""
    try:
        with os.scandir(folder) as items:
            names = [item.path for item in items if item.name.endswith(suffix)]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            yield Path(name), os.lstat(name)


def _evict(folder: Path) -> None:
    """Remove the oldest files beyond `MAX_BYTES`, and what writers that died have left."""
    for path, status in _files(folder, ".tmp"):
        if time.time() - status.st_mtime > _ABANDONED_AFTER:
            path.unlink(missing_ok=True)
    files = sorted(_files(folder, _SUFFIX), key=lambda item: item[1].st_mtime_ns)
    excess = sum(status.st_size for _, status in files) - MAX_BYTES
    for path, status in files:
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= status.st_size


def entries() -> list[EntryInfo]:
    """All kernels on disk, oldest first."""
    files = _files(directory(), _SUFFIX)
    stored = [EntryInfo(path.name.removesuffix(_SUFFIX), item.st_size, item.st_mtime) for path, item in files]
    return sorted(stored, key=lambda entry: (entry.modified, entry.key))


def verify_entries() -> list[tuple[str, str]]:
    """Read every file: (key, problem) of the damaged ones, which are not removed."""
    damaged = []
    for path, _ in _files(directory(), _SUFFIX):
        key = path.name.removesuffix(_SUFFIX)
        try:
            _decode(key, path.read_bytes())
        except (OSError, ValueError) as error:
            damaged.append((key, str(error)))
    return damaged


def clear() -> int:
    """Remove all kernels from disk; how many there were."""
    removed = 0
    for path, _ in _files(directory(), _SUFFIX):
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed


def info() -> DiskCacheInfo:
    """Where the cache is, how full it is, and why it is not used if it is not."""
    folder = directory()
    stored = entries()
    return DiskCacheInfo(folder, len(stored), sum(entry.size for entry in stored), MAX_BYTES, _problem(folder))
