"""SciPy's names for differentiable functions, in ops only; imports core, ops, numpy. SciPy is not imported."""

from jitgrad.scipy import special as special
from jitgrad.scipy import stats as stats
