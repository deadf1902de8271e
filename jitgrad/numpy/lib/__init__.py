"""numpy.lib, as far as it is about arrays: `stride_tricks`; imports core, ops, numpy."""

from jitgrad.numpy.lib import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]
