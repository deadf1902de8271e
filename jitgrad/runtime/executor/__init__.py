"""Runs a program as a table of instructions, by threads and BLAS; imports core, eager, compiler, backends."""
