"""All exceptions and warnings: one class per cause, derived from a similar builtin."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping

from numpy.linalg import LinAlgError as _LinAlgError


class JitgradError(Exception):
    """Base class of all errors that jitgrad raises on purpose; docs/errors.md lists them."""


class ShapeError(JitgradError, ValueError):
    """Shapes do not fit together (docs/errors.md#shapeerror)."""


class DtypeError(JitgradError, TypeError):
    """A dtype is not allowed here, or no common dtype exists (docs/errors.md#dtypeerror)."""


class ArgumentError(JitgradError, ValueError):
    """An argument has a value that the function cannot take (docs/errors.md#argumenterror)."""


class OperandError(JitgradError, TypeError):
    """An operand is not a tensor, array or number (docs/errors.md#operanderror)."""


class AxisError(JitgradError, ValueError, IndexError):
    """An axis is out of bounds or named twice (an IndexError and a ValueError, as in NumPy)
    (docs/errors.md#axiserror)."""


class IndexingError(JitgradError, IndexError):
    """An index does not fit the array (docs/errors.md#indexingerror)."""


class MatrixError(JitgradError, _LinAlgError):
    """A matrix is singular, or not positive definite, or a decomposition does not converge
    (docs/errors.md#matrixerror)."""


class OpDefinitionError(JitgradError, ValueError):
    """The record of an op contradicts itself (docs/errors.md#opdefinitionerror)."""


class AutogradError(JitgradError, RuntimeError):
    """The requested gradient does not exist or can no longer be computed
    (docs/errors.md#autograderror)."""


class InPlaceError(AutogradError):
    """A tensor that backward still needs was changed in place, or may not be changed in place
    (docs/errors.md#inplaceerror)."""


class ReadOnlyError(InPlaceError, ValueError):
    """An in-place change of memory that may not be changed, such as that of a broadcast (a ValueError, as in NumPy)
    (docs/errors.md#readonlyerror)."""

    @classmethod
    def of(cls, what: object) -> ReadOnlyError:
        """The error for ``what``, a tensor over such memory."""
        return cls(f"in-place change of a tensor {what} over read-only memory: .clone() it first")


class GraphFreedError(AutogradError):
    """backward ran a second time through a graph that the first run freed
    (docs/errors.md#graphfreederror)."""


class AnomalyError(AutogradError):
    """detect_anomaly found a NaN or Inf gradient (docs/errors.md#anomalyerror)."""


class GradcheckError(AutogradError, AssertionError):
    """An analytic gradient disagrees with finite differences (docs/errors.md#gradcheckerror)."""


class TraceError(JitgradError, RuntimeError):
    """@jit could not record the function (docs/errors.md#traceerror)."""


class TracedValueError(TraceError, TypeError):
    """Python asked for the value of an array that is only being traced
    (docs/errors.md#tracedvalueerror)."""


class RandomnessError(TraceError):
    """vmap met random numbers and was not told how examples differ in them
    (docs/errors.md#randomnesserror)."""


class LeakedTracerError(TraceError):
    """A tensor made while tracing was used after the trace had ended
    (docs/errors.md#leakedtracererror)."""


class UnguardableError(TraceError):
    """The function reads or changes state whose later changes @jit could not notice
    (docs/errors.md#unguardableerror)."""


class DonatedError(JitgradError, RuntimeError):
    """A tensor was used after it had been donated to a @jit function (docs/errors.md#donatederror)."""


class GuardError(JitgradError, RuntimeError):
    """State that a trace relies on differs in this call (docs/errors.md#guarderror)."""


class VerifyError(JitgradError, AssertionError):
    """A compiler pass produced a malformed graph: a bug in jitgrad (docs/errors.md#verifyerror)."""


class CodegenError(JitgradError, RuntimeError):
    """Kernel source could not be generated: a bug in jitgrad or in a user-defined op
    (docs/errors.md#codegenerror)."""


class BackendError(JitgradError, RuntimeError):
    """LLVM, numba or the machine failed (docs/errors.md#backenderror)."""


class CudaError(JitgradError, RuntimeError):
    """CUDA is not available, or the driver refused a call (docs/errors.md#cudaerror)."""


class OutOfMemoryError(CudaError, MemoryError):
    """A device has no memory left, even after the free memory of the pool was given back
    (docs/errors.md#outofmemoryerror)."""


class MemoryBudgetError(JitgradError, MemoryError):
    """The temporaries of a program do not fit its memory budget, even if values are computed again
    (docs/errors.md#memorybudgeterror)."""


class DeviceError(JitgradError, RuntimeError):
    """Tensors on different devices meet, or an operation needs data that is on another device
    (docs/errors.md#deviceerror)."""


class EjectError(JitgradError, ValueError):
    """A function cannot be written as a module of plain numba code (docs/errors.md#ejecterror)."""


class EjectedMismatchError(JitgradError, AssertionError):
    """An ejected module computes something else than eager execution does
    (docs/errors.md#ejectedmismatcherror)."""


class CheckpointError(JitgradError, ValueError, RuntimeError):
    """A state dict or a file of tensors does not fit the module (docs/errors.md#checkpointerror)."""


class JitgradWarning(UserWarning):
    """Base class of jitgrad's warnings; docs/errors.md lists them."""


class FallbackWarning(JitgradWarning):
    """A @jit function runs eagerly (docs/errors.md#fallbackwarning)."""


class BatchingWarning(JitgradWarning):
    """vmap applies an op to one example after the other (docs/errors.md#batchingwarning)."""


class MismatchWarning(JitgradWarning):
    """The fused program disagreed with eager execution and is not used
    (docs/errors.md#mismatchwarning)."""


class RetraceWarning(JitgradWarning):
    """A function is traced again and again (docs/errors.md#retracewarning)."""


class EffectWarning(JitgradWarning):
    """A @jit function prints, or changes Python state that it does not read: only when traced
    (docs/errors.md#effectwarning)."""


class MeaningWarning(JitgradWarning):
    """A call has another meaning in torch, and a result of another shape (docs/errors.md#meaningwarning)."""


class CacheWarning(JitgradWarning):
    """The disk cache could not be used for an entry (docs/errors.md#cachewarning)."""


def require_function(what: str, f: object) -> None:
    """Raise ArgumentError if ``f``, the function that ``what`` transforms, cannot be called."""
    if not callable(f):
        raise ArgumentError(f"{what}: expected a function, got {shown(f)}")


def raise_kept(errors: Mapping[int, Exception], positions: Collection[int]) -> None:
    """Raise the first of ``errors``, which were kept for later, that is for one of the ``positions``."""
    for position, error in errors.items():
        if position in positions:
            raise type(error)(*error.args)


class _Shortened(reprlib.Repr):
    maxother = maxstring = 60


def class_name(x: object) -> str:
    """The class of ``x``, with its module where that is not Python's own: other libraries have a Tensor, too."""
    cls = type(x)
    return cls.__qualname__ if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{cls.__qualname__}"


def shown(value: object) -> str:
    """``value`` shortened for an error message, which need not list a thousand numbers."""
    return _Shortened().repr(value)
