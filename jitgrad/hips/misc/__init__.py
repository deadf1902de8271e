"""autograd.misc: vectors of parameters, and optimisers that are functions; imports autograd, ops, core."""

from __future__ import annotations

import sys as _sys

from jitgrad.hips.misc.flatten import flatten as flatten

# Known under this name before anyone imports it: an import would put the module in the place of the function.
_sys.modules["jitgrad.autograd.misc.flatten"] = _sys.modules["jitgrad.hips.misc.flatten"]
