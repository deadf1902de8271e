"""Targets: what a target is, and the kernels of each; imports core, eager, vecmath, compiler, runtime."""
