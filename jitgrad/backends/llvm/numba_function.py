"""Scalar functions of users in kernels of the cpu target: numba compiles them, so they may be
anything it understands.

Import this module only when a kernel with such a function is compiled: it imports numba (0.3 s).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import types

from jitgrad.backends.llvm.types import NUMBERS, DialectFunction, DialectTypeError, TypedValue
from jitgrad.core.errors import BackendError

NUMBA_TYPES: dict[str, Any] = {
    "f32": types.float32,
    "f64": types.float64,
    "bool": types.boolean,
    **{f"{category[0]}{bits}": getattr(types, f"{category}{bits}") for category in ("int", "uint") for bits in (8, 16, 32, 64)},
}
_NAMES = {type_: name for name, type_ in NUMBA_TYPES.items()}


@cache
def numba_function(function: Callable[..., Any]) -> DialectFunction:
    """``function`` as kernel source can call it: compiled for the dtypes of its operands, linked to
    the kernel.

    Raises:
        BackendError: from a call, with numba's message, if numba cannot compile it.
    """
    dispatcher: Any = function if hasattr(function, "py_func") else numba.njit(function, error_model="numpy")

    def call(builder: Any, *operands: TypedValue) -> TypedValue:
        operand_types = tuple([NUMBA_TYPES[str(x.type)] for x in operands])
        try:
            dispatcher.compile(operand_types)
        except Exception as error:  # numba lets its own TypeErrors and AssertionErrors through
            name = getattr(function, "__name__", "function")
            raise BackendError(f"numba cannot compile {name}({', '.join(str(x.type) for x in operands)}): {error}") from error
        compiled = dispatcher.overloads[operand_types]
        result = _NAMES.get(compiled.signature.return_type)
        if result is None:
            raise DialectTypeError(f"returns {compiled.signature.return_type}, not a number")
        text = str(compiled.library._get_module_for_linking())
        if text not in builder.module.linked:
            builder.module.linked.append(text)
        # `CompiledModule.raises` tells from the optimised code whether it can raise
        _, value = compiled.target_context.call_internal_no_propagate(
            builder, compiled.fndesc, compiled.signature, [x.ir for x in operands]
        )
        return TypedValue(NUMBERS[result], value)

    return call
