"""CUDA kernels: loop forms, schedules, PTX, and an emulator for machines without a GPU; imports core, eager, ops,
vecmath, compiler, backends.llvm, backends.codegen, backends.base."""
