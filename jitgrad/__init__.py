"""Fuses whole training steps into a few kernels."""
