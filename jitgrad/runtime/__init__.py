"""Running a compiled function: its steps, its memory, its threads, and BLAS."""
