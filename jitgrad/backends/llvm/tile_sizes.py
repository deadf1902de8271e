"""Sizes of the tiles that kernels of the CPU hold in registers and on the stack. Imports
nothing."""

# Rows of at most SHORT_ROW elements run LANES at a time, one row per vector lane.
SHORT_ROW = 32
LANES = 64
# Blocks of elements of fewer bytes are not transposed in registers
# (`jitgrad.backends.llvm.transpose`).
LEAST_BYTES = 2
# Products: bytes of a panel's rows, and rows of the tiles, largest first
# (`jitgrad.backends.llvm.tiles`).
PANEL = 256
TILE_ROWS = (6, 4, 2, 1)
