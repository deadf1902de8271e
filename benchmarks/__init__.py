"""jitgrad against NumPy, PyTorch and JAX: the same functions, checked first, then timed side by side."""

from benchmarks.cli import main

__all__ = ["main"]
