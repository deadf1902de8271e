"""Values whose changes no guard can notice, with remedies for code that reads them."""

from __future__ import annotations

import builtins
import collections.abc
import os
import random
import sys
import sysconfig
from functools import lru_cache
from types import BuiltinFunctionType, MemberDescriptorType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jitgrad.core.origin import is_user_file
from jitgrad.guards.object_state import is_heap_type

_PURELIB = tuple({sysconfig.get_paths()[kind] + os.sep for kind in ("purelib", "platlib")})

_CLOCK = "read the clock outside and pass the result as an argument"
_RANDOM = "use jitgrad's random functions (jitgrad.manual_seed, jitgrad.Generator), or pass the numbers as arguments"
ENVIRONMENT = "read it once at module level into a global, which @jit can guard"
_INPUT = "read the data outside and pass it as an argument"
_FILES = "ask the file system outside and pass the answer as an argument"
_UNIQUE = "make it outside and pass it as an argument"
_THREAD = "pass what depends on the thread as an argument"
_OTHER_THREAD = "what runs in another thread is not traced: call its function here"
_NAMES = "name the variable itself, so that @jit can guard it"

UNREPEATABLE = {"time": _CLOCK, "random": _RANDOM, "secrets": _RANDOM, "uuid": _UNIQUE, "numpy.random.mtrand": _RANDOM}

# modules of the standard library and NumPy whose C types are compared, or are immutable
_KNOWN_MODULES = frozenset(
    [
        "builtins", "types", "functools", "_functools", "itertools", "operator", "_operator", "re", "collections",
        "_collections", "datetime", "decimal", "_struct", "weakref", "_weakref", "_thread", "threading", "numpy", "_io",
        "enum", "_contextvars", "_abc", "zoneinfo", "_zoneinfo", "array", "typing", "_typing", "_random", "random", "_queue",
    ]
)  # fmt: skip

_FUNCTIONS = {
    "input": _INPUT, "open": _INPUT,
    "globals": _NAMES, "eval": _NAMES, "exec": _NAMES,
}  # fmt: skip

_NAMED = {
    ("numpy", "load"): _INPUT, ("numpy", "loadtxt"): _INPUT, ("numpy", "genfromtxt"): _INPUT,
    ("numpy", "fromfile"): _INPUT, ("numpy", "memmap"): _INPUT, ("posix", "stat"): _FILES, ("posix", "lstat"): _FILES,
    ("posix", "access"): _FILES, ("posix", "getcwd"): _FILES, ("posix", "scandir"): _FILES, ("posix", "readlink"): _FILES,
    ("posix", "open"): _INPUT, ("sys", "getrecursionlimit"): _UNIQUE, ("sys", "getrefcount"): _UNIQUE,
    ("gc", "isenabled"): _UNIQUE, ("gc", "get_count"): _UNIQUE, ("gc", "get_objects"): _UNIQUE,
    ("gc", "get_stats"): _UNIQUE, ("gc", "get_referrers"): _UNIQUE,
    ("os", "getenv"): ENVIRONMENT, ("os", "urandom"): _RANDOM, ("posix", "urandom"): _RANDOM,
    ("posix", "times"): _CLOCK, ("posix", "getpid"): _UNIQUE, ("posix", "listdir"): _INPUT,
    ("threading", "get_ident"): _THREAD, ("_thread", "get_ident"): _THREAD, ("_thread", "get_native_id"): _THREAD,
    ("threading", "start"): _OTHER_THREAD, ("_thread", "start_new_thread"): _OTHER_THREAD,
    ("threading", "current_thread"): _THREAD, ("threading", "active_count"): _THREAD,
    ("numpy.random", "default_rng"): _RANDOM, ("numpy.random", "seed"): _RANDOM,
    ("numpy.random._generator", "default_rng"): _RANDOM, ("io", "open"): _INPUT, ("_io", "open"): _INPUT,
}  # fmt: skip


@lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Whether ``filename`` belongs to jitgrad or a library, which are trusted not to change."""
    path = os.path.abspath(filename)
    return (
        not is_user_file(filename)
        or path.startswith(_PURELIB)
        or f"{os.sep}site-packages{os.sep}" in path
        or f"{os.sep}dist-packages{os.sep}" in path
    )


def is_library_module(name: str) -> bool:
    """Whether the module ``name`` is a library's; modules without a file are the user's."""
    if name == "__main__":
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    if isinstance(file, str):
        return is_library_file(file)
    # the functions of cython have a type in a module without a file
    return name.startswith(("_cython", "jitgrad.")) or name.partition(".")[0] in sys.stdlib_module_names


def is_library_class(cls: type) -> bool:
    return is_library_module(str(cls.__module__))


def is_jitgrad_class(cls: type) -> bool:
    """Whether jitgrad defines ``cls``."""
    return cls.__module__.startswith("jitgrad.")


def is_read_unseen(cls: type) -> bool:
    """Whether methods of ``cls`` are Python code that is not followed: of jitgrad, or of NumPy such as a Polynomial."""
    return is_jitgrad_class(cls) or (cls.__module__.partition(".")[0] == "numpy" and cls.__dictoffset__ != 0)


def is_native(cls: type) -> bool:
    """Whether objects of ``cls`` hold data of C code that jitgrad does not know how to compare.

    A class of Python code adds to the size of its base only slots, a dict and weak references.
    """
    native = _native.get(cls)
    if native is None:
        native = _native[cls] = _has_own_layout(cls)
    return native


_native: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def _has_own_layout(cls: type) -> bool:
    for base in cls.__mro__:
        if base is object or base.__module__ in _KNOWN_MODULES:
            return False
        if _adds_data(base):
            return True
    return False


def _adds_data(cls: type) -> bool:
    """Whether instances of ``cls`` have data of C code that those of its base do not have."""
    parent = cls.__base__
    assert parent is not None
    members = sum(isinstance(x, MemberDescriptorType) for x in vars(cls).values())
    own = 8 * (members + ("__dict__" in vars(cls)) + ("__weakref__" in vars(cls)))
    return cls.__basicsize__ - parent.__basicsize__ > own or cls.__itemsize__ != parent.__itemsize__


def is_python_class(cls: type) -> bool:
    """Whether a class statement made ``cls``: its instances add only slots, a dict and weak references to the base's."""
    made_by_c = not is_heap_type(cls) or isinstance(vars(cls).get("__new__"), BuiltinFunctionType)
    return not made_by_c and not _adds_data(cls)


def remedy_for(value: Any) -> str | None:
    """The remedy for code that reads or calls ``value``, or None if it is harmless."""
    if value is os.environ:
        return ENVIRONMENT
    if isinstance(value, type | ModuleType) or not callable(value) or not is_library_class(type(value)):
        return None
    owner = getattr(value, "__self__", None)
    if owner is os.environ:
        return ENVIRONMENT
    if isinstance(owner, np.random.RandomState | np.random.Generator | random.Random):
        return _RANDOM
    name = getattr(value, "__name__", "")
    if isinstance(owner, type) and owner.__module__ == "datetime":
        return _CLOCK if name in ("now", "utcnow", "today") else None
    if not isinstance(name, str) or value is getattr(builtins, name, None):
        return _FUNCTIONS.get(name) if isinstance(name, str) else None
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or not is_library_module(module):
        return None
    return UNREPEATABLE.get(module) or _NAMED.get((module, name))


def is_consumed_by_reading(value: Any) -> bool:
    """Whether ``value`` is a generator, file or other iterator, which reading uses up."""
    if isinstance(value, BuiltinFunctionType | type) or not isinstance(value, collections.abc.Iterator):
        return False
    return is_library_class(type(value))
