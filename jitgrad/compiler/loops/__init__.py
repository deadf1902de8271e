"""Loops as one op whose turn is compiled once; imports core, eager, ops, autograd, guards, compiler."""
