"""NumPy's own random numbers, for data: functions under @jit take them as arguments, or use jitgrad's."""

from numpy.random import *  # noqa: F403 - the same names
from numpy.random import __all__  # noqa: F401
