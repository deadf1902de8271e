"""NumPy's own random numbers, for data: functions under @jit take them as arguments, or use jitgrad's."""

from numpy.random import *  # noqa: F403 - the same names
from numpy.random import __all__  # noqa: F401

from jitgrad.core.missing_names import INSTEAD as _INSTEAD
from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising

# JAX has its keys beside NumPy's names; close names are meant only among NumPy's.
__getattr__: _Lookup = _raising(
    "jitgrad.numpy.random", globals(), {name: _INSTEAD["random"] for name in ("PRNGKey", "key", "split", "fold_in")}
)
