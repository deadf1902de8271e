"""Runs a program's instructions: the native loop, the thread pool, BLAS. Imports back ends only."""
