"""torch.func: transforms of functions, under torch's names; imports batching, nn, autograd, ops, core."""

from __future__ import annotations

from jitgrad.autograd.functional import grad as grad
from jitgrad.autograd.functional import jvp as jvp
from jitgrad.autograd.functional import vjp as vjp
from jitgrad.batching.jacobians import hessian as hessian
from jitgrad.batching.jacobians import jacfwd as jacfwd
from jitgrad.batching.jacobians import jacobian as jacrev
from jitgrad.batching.vmap import vmap as vmap
from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.func.modules import functional_call as functional_call
from jitgrad.func.modules import stack_module_state as stack_module_state
from jitgrad.func.values import grad_and_value as grad_and_value

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]

__getattr__: _Lookup = _raising("jitgrad.func", globals())
