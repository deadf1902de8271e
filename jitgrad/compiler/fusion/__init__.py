"""Which nodes share a loop nest, and why others do not; imports core, eager, ops, compiler."""
