"""Which source files an observer follows: all but jitgrad's core, NumPy and parts of the standard library."""

from __future__ import annotations

import os
import sysconfig
from functools import lru_cache

import numpy as np

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
# of jitgrad: layers and other objects that hold tensors, groups of parameters, and the wrapper of functions under @no_grad,
# which hands arguments on
_OBSERVED = (
    *[os.path.join(_PACKAGE, room) + os.sep for room in ("nn", "distributions", "utils")],
    os.path.join(_PACKAGE, "autograd", "modes.py"),
    os.path.join(_PACKAGE, "optim", "param_group.py"),
    os.path.join(_PACKAGE, "cli", "demo.py"),
)
# parts of the standard library that read clocks, files and their own caches, but give none of it to the caller
_QUIET = (
    "logging", "warnings.py", "threading.py", "traceback.py", "linecache.py", "tokenize.py", "inspect.py", "typing.py",
    "abc.py", "weakref.py", "_weakrefset.py", "importlib", "codecs.py", "locale.py", "re", "sre_compile.py",
    "sre_parse.py", "enum.py", "ast.py", "dis.py", "opcode.py",
)  # fmt: skip

_FROZEN = (  # modules that Python holds in memory
    "<frozen os>", "<frozen posixpath>", "<frozen ntpath>", "<frozen genericpath>", "<frozen io>", "<frozen _collections_abc>",
)  # fmt: skip


@lru_cache(maxsize=4096)
def is_standard_library(filename: str) -> bool:
    """Whether code belongs to Python's own library, which jitgrad and NumPy call, too."""
    if filename.startswith("<frozen "):
        return True
    return os.path.abspath(filename).startswith(_STDLIB) and "site-packages" not in filename


@lru_cache(maxsize=4096)
def is_observed(filename: str) -> bool:
    """Whether reads in ``filename`` are observed: everywhere but in jitgrad's core and in NumPy."""
    if filename.startswith("<frozen "):
        return filename in _FROZEN
    if filename.startswith("<jitgrad"):
        return False
    path = os.path.abspath(filename)
    if path.startswith(_PACKAGE):
        return path.startswith(_OBSERVED)
    if is_standard_library(filename):
        return path.removeprefix(_STDLIB).partition(os.sep)[0] not in _QUIET
    return not path.startswith(_NUMPY) and f"{os.sep}optree{os.sep}" not in path
