"""Translates kernel source, a subset of Python, to LLVM IR and machine code; imports core, ops,
vecmath, compiler."""
