"""scipy.signal's windows; imports core, ops, signal. SciPy is not imported."""

from jitgrad.scipy.signal import windows as windows
