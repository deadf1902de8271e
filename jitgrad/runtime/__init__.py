"""Runs a compiled program: its steps and its memory; imports core, eager, ops, compiler,
backends."""
