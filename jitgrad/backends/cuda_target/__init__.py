"""Runs programs and single ops on a CUDA device; imports core, eager, vecmath, device, ops, testing, compiler, runtime,
backends.base, backends.codegen, backends.llvm, backends.cuda."""
