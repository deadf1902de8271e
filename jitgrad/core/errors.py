"""All exceptions and warnings: one class per cause, derived from a similar builtin."""

from __future__ import annotations

import reprlib

from numpy.linalg import LinAlgError as _LinAlgError


class JitgradError(Exception):
    """Base class of all errors that jitgrad raises on purpose."""


class ShapeError(JitgradError, ValueError):
    """Shapes do not fit together."""


class DtypeError(JitgradError, TypeError):
    """A dtype is not allowed here, or no common dtype exists."""


class ArgumentError(JitgradError, ValueError):
    """An argument has a value that the function cannot take."""


class OperandError(JitgradError, TypeError):
    """An operand is not a tensor, array or number."""


class AxisError(JitgradError, ValueError, IndexError):
    """An axis is out of bounds or named twice (an IndexError and a ValueError, as in NumPy)."""


class IndexingError(JitgradError, IndexError):
    """An index does not fit the array."""


class MatrixError(JitgradError, _LinAlgError):
    """A matrix is singular, or not positive definite, or a decomposition does not converge."""


class OpDefinitionError(JitgradError, ValueError):
    """The record of an op contradicts itself."""


class AutogradError(JitgradError, RuntimeError):
    """The requested gradient does not exist or can no longer be computed."""


class InPlaceError(AutogradError):
    """A tensor that backward still needs was changed in place, or may not be changed in place."""


class GraphFreedError(AutogradError):
    """backward ran a second time through a graph that the first run freed."""


class AnomalyError(AutogradError):
    """detect_anomaly found a NaN or Inf gradient."""


class GradcheckError(AutogradError, AssertionError):
    """An analytic gradient disagrees with finite differences."""


class TraceError(JitgradError, RuntimeError):
    """@jit could not record the function."""


class TracedValueError(TraceError, TypeError):
    """Python asked for the value of an array that is only being traced."""


class LeakedTracerError(TraceError):
    """A tensor made while tracing was used after the trace had ended."""


class UnguardableError(TraceError):
    """The function reads or changes state whose later changes @jit could not notice."""


class DonatedError(JitgradError, RuntimeError):
    """A tensor was used after it had been donated to a @jit function."""


class GuardError(JitgradError, RuntimeError):
    """State that a trace relies on differs in this call."""


class VerifyError(JitgradError, AssertionError):
    """A compiler pass produced a malformed graph: a bug in jitgrad."""


class CodegenError(JitgradError, RuntimeError):
    """Kernel source could not be generated: a bug in jitgrad or in a user-defined op."""


class BackendError(JitgradError, RuntimeError):
    """LLVM, numba or the machine failed."""


class CudaError(JitgradError, RuntimeError):
    """CUDA is not available, or the driver refused a call."""


class OutOfMemoryError(CudaError, MemoryError):
    """A device has no memory left, even after the free memory of the pool was given back."""


class DeviceError(JitgradError, RuntimeError):
    """Tensors on different devices meet, or an operation needs data that is on another device."""

class EjectError(JitgradError, ValueError):
    """A function cannot be written as a module of plain numba code."""


class EjectedMismatchError(JitgradError, AssertionError):
    """An ejected module computes something else than eager execution does."""


class CheckpointError(JitgradError, ValueError):
    """A state dict or a file of tensors does not fit the module."""


class JitgradWarning(UserWarning):
    """Base class of jitgrad's warnings."""


class FallbackWarning(JitgradWarning):
    """A @jit function runs eagerly."""


class MismatchWarning(JitgradWarning):
    """The fused program disagreed with eager execution and is not used."""


class RetraceWarning(JitgradWarning):
    """A function is traced again and again."""


class EffectWarning(JitgradWarning):
    """A @jit function prints, or changes Python state that it does not read: only when traced."""


class CacheWarning(JitgradWarning):
    """The disk cache could not be used for an entry."""


class _Shortened(reprlib.Repr):
    maxother = maxstring = 60


def shown(value: object) -> str:
    """``value`` shortened for an error message, which need not list a thousand numbers."""
    return _Shortened().repr(value)
