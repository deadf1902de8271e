"""The functions that kernel source calls besides `jitgrad.backends.llvm.intrinsics`: vector mathematics, and integer forms."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jitgrad import vecmath
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.core.fork import importing


@cache
def library_key() -> str:
    """A digest of the functions that kernel source calls from `jitgrad.vecmath`: part of a kernel's
    identity on disk."""
    digest = hashlib.sha256()
    for path in sorted(Path(vecmath.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def native_names() -> Mapping[str, Any]:
    """All of them by name. This imports llvmlite."""
    with importing:
        from jitgrad.backends.llvm import kernel_frontend, vector_functions

    integers = {name: kernel_frontend.written(function) for name, function in INTEGER_FUNCTIONS.items()}
    return {**vector_functions.VECTOR_FUNCTIONS, **integers, "INF": math.inf, "NAN": math.nan}


@cache
def numpy_rounding_names() -> Mapping[str, Any]:
    """`native_names`, with functions that round as eager execution does. This imports llvmlite."""
    with importing:
        from jitgrad.backends.llvm import vector_functions

    return {**native_names(), **vector_functions.AS_NUMPY}


class LibraryNames(Mapping[str, Any]):
    """`native_names`, made when they are first read: never for code from disk."""

    def __getitem__(self, key: str) -> Any:
        return native_names()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(native_names())

    def __len__(self) -> int:
        return len(native_names())
