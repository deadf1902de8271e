"""From a traced graph to kernels and a plan, for any target; imports core, eager, ops, autograd."""
