"""The thresholds of a target: from which size on one form of a program is faster than another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """One field per threshold; the defaults suit a CPU. Compiler code gets it as an argument and reads no other."""

    # --- isomorphic parts and kernels ------------------------------------------------------------------------------

    # With fewer equal parts nothing is outlined: the kernel that computes the numbers they share could be one of theirs.
    min_isomorphic_parts: int = 32
    # Limits beyond which one kernel compiles slowly or spills registers; a larger group is split.
    max_kernel_nodes: int = 160
    max_kernel_operands: int = 28

    # --- reductions ------------------------------------------------------------------------------------------------

    # Kept axes become rows if there are enough of them to share among cores, and if a row is not many short pieces,
    # which often fall into the same few lines of a cache. Measured with batch norms of 0.5 to 200 MB, also of powers of
    # two: with at most as many pieces as elements in one it is as fast or faster, even for rows larger than the cache.
    min_kept_rows: int = 16
    min_row_run: int = 32
    max_row_bytes: int = 16 << 20
    # The shortest last axis whose elements fill the lanes of vectors.
    min_lanes: int = 16
    # Each chunk of rows has a row of partial results, which costs as much as reading a row of the operand; with more
    # rows, or shorter ones, the partial results do not matter.
    max_unrolled_rows: int = 16
    min_unrolled_columns: int = 4096
    # A reduction is hoisted if at most this many cheap operations lead to it.
    max_hoisted_nodes: int = 12
    # Each distinct term of a mean's gradient is another sum in an earlier sweep.
    max_gradient_terms: int = 4

    # --- pieces along short axes -----------------------------------------------------------------------------------

    # At most so many pieces of one value (a window of 3x3x3), each of at least so many elements, and so many ops in all.
    max_pieces: int = 27
    min_piece: int = 16
    max_unrolled_nodes: int = 512
    # An array that is read so many times is worth a copy whose elements are neighbours.
    repeated_reads: int = 8

    # --- matrix products -------------------------------------------------------------------------------------------

    # BLAS multiplies smaller matrices by one row faster than a kernel sums columns (256 x 256: 10 us, 15 us).
    min_column_sum_bytes: int = 1 << 21
    # Products of more rows keep BLAS busy on their own, and leave their results in cache for the ops that read them.
    max_batched_rows: int = 256
    # The results of one product for many stay in memory as long as a loop over time may be, and so do the operands of
    # one product for a sum. Products with more bytes stay apart.
    max_batched_result_bytes: int = 16 << 20
    max_batched_operand_bytes: int = 64 << 20
    # A transposed matrix is copied for so many products of at most so many multiplications; larger products transpose
    # it in a small part of their time.
    min_transposed_products: int = 4
    max_transposed_work: int = 1 << 20

    # --- slices ----------------------------------------------------------------------------------------------------

    # Slices move up through at most this many elementwise ops.
    max_slice_steps: int = 8
    # One value at several places is put into zeros once, if that takes at most this part more memory than one place.
    max_pad_growth: float = 0.25
