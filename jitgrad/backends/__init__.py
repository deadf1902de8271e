"""Targets: their protocol and registry; imports core, eager, vecmath, compiler, runtime."""
