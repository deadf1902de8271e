"""Tables of ops and the functions over them, which Tensor has as methods; imports core, eager, device, vecmath."""

from jitgrad.ops import convolution, losses, methods, neural, random  # noqa: F401 - these import all other tables
