"""SciPy's names for differentiable functions, in ops only; imports core, ops, numpy, signal. SciPy is not imported."""

from jitgrad.scipy import signal as signal
from jitgrad.scipy import special as special
from jitgrad.scipy import stats as stats
