"""Writes compiled functions as standalone modules of plain numba code. Imports everything below it."""
