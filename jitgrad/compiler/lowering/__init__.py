"""From a fused group to a kernel: loop nest, sweeps, statements; imports core, eager, cost, tuning,
compiler_ops, fusion."""
