"""vmap: a traced function of one example on whole arrays; imports compiler, autograd, device, ops, eager, core."""

from jitgrad.batching.jacobians import hessian as hessian
from jitgrad.batching.jacobians import jacfwd as jacfwd
from jitgrad.batching.jacobians import jacobian as jacobian
from jitgrad.batching.vmap import vmap as vmap
