"""Translates the kernel dialect, a subset of Python, to LLVM IR, and LLVM IR to machine code in memory."""
