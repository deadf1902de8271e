"""jitgrad against NumPy, PyTorch and JAX: the same functions, checked first, then timed in turn."""

from benchmarks.cli import main

__all__ = ["main"]
