"""torch.signal's names: windows, and short-time Fourier transforms; imports core, ops, nn, numpy."""

from jitgrad.signal import windows as windows
