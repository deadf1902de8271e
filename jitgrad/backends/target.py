"""A numba target for kernels: numba's scalars, operators and loops, and nothing of its arrays, objects and runtime.

numba's own CPU target loads all it can compile before it compiles anything, half a second's worth, tries every
overload of an operator, those for strings and sets included, at every use, and links its reference counting into every
function. Kernels are arithmetic on scalars and pointers. Import this module only when a kernel is compiled: it imports
numba.
"""

from __future__ import annotations

from functools import cache, cached_property, partial
from typing import Any

from llvmlite import ir
from numba.core import cpu, decorators, descriptors, types
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_registry
from numba.core.typing import BaseContext
from numba.cpython import builtins, mathimpl, numbers, rangeobj, tupleobj  # noqa: F401  # what they import registers itself

from jitgrad.backends import ranges

NAME = "jitgrad"


class KernelTarget(CPU):  # type: ignore[misc]
    """What numba calls hardware: selects what is registered for any target or for CPUs."""


class TypingContext(BaseContext):  # type: ignore[misc]
    """Types of operators and functions, each worked out once per combination of operand types."""

    def __init__(self) -> None:
        self._resolved: dict[Any, Any] = {}
        super().__init__()

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of ``func`` for operands of types ``args``: found by numba, and remembered."""
        if kws or isinstance(func, types.Dispatcher):
            return super().resolve_function_type(func, args, kws)
        of_function = isinstance(func, types.Function)
        if (func, args) not in self._resolved:
            signature = super().resolve_function_type(func, args, kws)
            if signature is None:
                return None
            self._resolved[func, args] = signature, func.get_impl_key(signature) if of_function else None
        signature, implementation = self._resolved[func, args]
        if of_function:  # its type is one for all targets, and knows what the last one that asked has found
            func._impl_keys[signature.args] = implementation
        return signature


@cache
def _size_of(layout: Any, ty: Any) -> int:
    """Numbers and pointers without LLVM, which would have to finish the kernel it is optimising before it answers."""
    if isinstance(ty, ir.PointerType):
        return 8
    known = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}.get(str(ty))
    return known or int(ty.get_abi_size(layout))


class TargetContext(cpu.CPUContext):  # type: ignore[misc]
    """Lowering by what numba registers as built in; no further registries, no runtime to link."""

    def get_abi_sizeof(self, ty: Any) -> int:
        """Bytes of the LLVM type ``ty``; LLVM reads a module made for each question."""
        return _size_of(self.target_data, ty)

    data_model_manager: Any

    def init(self) -> None:
        super().init()
        self.data_model_manager = self.data_model_manager.copy()
        ranges.register_models(self.data_model_manager)

    def refresh(self) -> None:
        super().refresh()
        self.install_registry(ranges.registry)  # last, to take the place of what is built in

    def load_additional_registries(self) -> None:
        """Only what ``abs`` of floats is made of."""
        self.install_registry(mathimpl.registry)

    def pair_first(self, builder: Any, val: Any, ty: Any) -> Any:
        """The first of a pair, without the stack that numba puts it on to take it apart."""
        return builder.extract_value(val, 0)

    def pair_second(self, builder: Any, val: Any, ty: Any) -> Any:
        """The second of a pair, likewise."""
        return builder.extract_value(val, 1)

    def post_lowering(self, mod: Any, library: Any) -> None:
        """Nothing: kernels hold no references, so numba's runtime is not linked."""


class Descriptor(descriptors.TargetDescriptor):  # type: ignore[misc]
    """The two contexts of the target, made when they are first asked for."""

    @cached_property
    def typing_context(self) -> Any:
        return TypingContext()

    @cached_property
    def target_context(self) -> Any:
        return TargetContext(self.typing_context, NAME)


class _Dispatcher(CPUDispatcher):  # type: ignore[misc]
    """Where numba looks for the contexts of a target."""

    targetdescr = Descriptor(NAME)


target_registry[NAME] = KernelTarget
dispatcher_registry[KernelTarget] = _Dispatcher
jit_registry[KernelTarget] = partial(decorators.jit, _target=NAME)  # for functions that numba has as Python code
kernel_target = _Dispatcher.targetdescr
