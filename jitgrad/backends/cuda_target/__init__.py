"""Runs programs and single ops on a CUDA device; imports core, eager, device, ops, testing, compiler, runtime,
backends.base, backends.codegen, backends.cuda."""
