"""Turns a fused group into a kernel: loop nest, sweeps, statements. Imports fusion."""
