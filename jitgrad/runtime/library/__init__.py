"""Library ops as machine code: indexing, scans, selection; imports core, eager, ops, compiler, llvm, executor."""
