"""The thresholds of a target: from which size on one form of a program is faster than another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """One field per threshold; the defaults suit a CPU. Compiler code gets it as an argument and
    reads no other."""

    # --- blocks of a kernel's iterations ----------------------------------------------------------------------------

    # A block has at most about this many elements: enough to hide the cost of handing it out, small
    # enough for L2.
    max_block: int = 16384
    # Small work is cut into smaller blocks, down to some 4 us each (a tanh costs as much as 12
    # additions).
    enough_blocks: int = 16
    block_operations: int = 1 << 16
    costly_operations: int = 12
    min_block: int = 1024
    # Sums over rows keep partial results for each block, and one thread merges them.
    max_merged_blocks: int = 64
    # Partial results of columns are rows, half of which lie in other cores' caches: 64 where 16 are
    # enough for all CPUs take up to 1.2 of the time. The target lowers it to what its CPUs need.
    max_column_blocks: int = 64

    # Kernels over the same elements run block by block if that keeps so many bytes out of memory. A
    # block touches at most so many bytes, a part of the second-level cache, and its kernels compute
    # at least so many elements on average, for which starting one costs little. 0 bytes: none do.
    block_bytes: int = 1 << 19
    min_local_bytes: int = 1 << 20
    min_block_elements: int = 1024

    # --- forms of kernels -----------------------------------------------------------------------------------------

    # Rows become vector lanes up to twice this length, for at most this many operands: their tiles
    # lie on the stack.
    vector_bytes: int = 64
    max_tiles: int = 12
    # Operands whose rows run across memory are transposed in tiles, up to so many, in axes of at
    # least this length, and in blocks of at least so many rows: a line of such an operand holds
    # elements of as many rows.
    max_transposed_operands: int = 4
    min_transposed_length: int = 8
    min_transposed_rows: int = 32
    # Functions such as exp that are computed once per row, which no vectors do, become a kernel over
    # all rows if there are so many of them, and rows have fewer bytes for each: logistic regression
    # with 40 float32 features takes 0.4 of the time, with 128 float64 ones 0.9, layer norm 1.25.
    row_bytes_per_function: int = 448
    min_functions_of_rows: int = 1 << 12
    # Neighbouring rows that fill vectors if rows run across memory.
    min_row_lanes: int = 4
    # Rows longer than ``max_pieces`` of fewer neighbours are rather cut into one piece for each neighbour: softmax over 128
    # of [64, 128, 6] takes 0.5 of the time then, of [64, 128, 8] 1.5, and LLVM twice as long.
    min_packed_rows: int = 8
    # Non-temporal stores, measured with AVX-512 (Sapphire Rapids), reading three arrays and writing
    # two: with 5 MB in all they take 0.9 of the time, with 10 MB 0.8 to 1, from 20 MB on 0.55 to
    # 0.75. A copy of 2 MB takes 1.6 times as long.
    min_nontemporal_bytes: int = 16 << 20
    # The pool aligns results of 4 kB and more with lines.
    min_nontemporal_result: int = 1 << 16
    # Sweeps of longer rows keep values for each other in a result's memory.
    max_nontemporal_row: int = 1 << 16

    # --- isomorphic parts and kernels ------------------------------------------------------------------------------

    # With fewer equal parts nothing is outlined: the kernel that computes the numbers they share
    # could be one of theirs.
    min_isomorphic_parts: int = 32
    # Limits beyond which one kernel compiles slowly or spills registers; a larger group is split.
    max_kernel_nodes: int = 160
    max_kernel_operands: int = 48

    # --- reductions ------------------------------------------------------------------------------------------------

    # Kept axes become rows if there are enough of them to share among cores, and if a row is not
    # many short pieces, which often fall into the same few lines of a cache. Measured with batch
    # norms of 0.5 to 200 MB, also of powers of two: with at most as many pieces as elements in one
    # it is as fast or faster, even for rows larger than the cache.
    min_kept_rows: int = 16
    min_row_run: int = 32
    max_row_bytes: int = 16 << 20
    # The shortest last axis whose elements fill the lanes of vectors.
    min_lanes: int = 16
    # Whether a library computes what no loop nest does: a reduction over axes between kept ones. Else its operand is read
    # with its axes in another order.
    library_reductions: bool = True
    # Outer differences and products of at least so many elements are computed again for each
    # reduction that needs loops of its own: fewer are in the first-level caches between kernels.
    min_recomputed: int = 1 << 15
    # Functions such as exp of them, too, if they have so many bytes, which no second-level cache
    # keeps between kernels.
    min_recomputed_bytes: int = 1 << 22
    # Each chunk of rows has a row of partial results, which costs as much as reading a row of the
    # operand; with more rows, or shorter ones, the partial results do not matter.
    max_unrolled_rows: int = 16
    min_unrolled_columns: int = 4096
    # At most so many rows of at least so many elements are reduced in parts: a block of a GPU runs one row, or one part. 0
    # rows: none.
    max_split_rows: int = 0
    min_split_row: int = 1 << 15
    # A reduction is hoisted if at most this many cheap operations lead to it.
    max_hoisted_nodes: int = 12
    # Each distinct term of a mean's gradient is another sum in an earlier sweep.
    max_gradient_terms: int = 4

    # --- pieces along short axes -----------------------------------------------------------------------------------

    # At most so many pieces of one value (a window of 3x3x3), each of at least so many elements,
    # and so many ops in all.
    max_pieces: int = 27
    min_piece: int = 16
    max_unrolled_nodes: int = 512
    # Pieces along the last axis of an array are interleaved. Up to so many are read and written as whole vectors, a kernel
    # for each point: the energy of springs between points of three coordinates takes 0.3 of the time of rows of three.
    interleaved_pieces: int = 4
    # Products of so many points with a few rows and columns are computed piece by piece, too.
    min_points: int = 256
    # An array that is read so many times is worth a copy whose elements are neighbours.
    repeated_reads: int = 8

    # --- matrix products -------------------------------------------------------------------------------------------

    # BLAS multiplies smaller matrices by one row faster than a kernel sums columns (256 x 256: 10
    # us, 15 us).
    min_column_sum_bytes: int = 1 << 21
    # Whether products of integers are sums in kernels: no library at hand computes them.
    integer_products: bool = False
    # Products of more rows keep BLAS busy on their own, and leave their results in cache for the
    # ops that read them.
    max_batched_rows: int = 256
    # The results of one product for many stay in memory as long as a loop over time may be, and so
    # do the operands of one product for a sum. Products with more bytes stay apart.
    max_batched_result_bytes: int = 16 << 20
    max_batched_operand_bytes: int = 64 << 20
    # A transposed matrix is copied for so many products of at most so many multiplications; larger
    # products transpose it in a small part of their time.
    min_transposed_products: int = 4
    max_transposed_work: int = 1 << 20

    # For programs with a memory budget. 1: an op stays out of an earlier kernel if all that it reads there is in memory in
    # any case. The factor of a gradient, such as 1 - tanh(x)**2, is then computed when it is needed, and nothing keeps it.
    # 2: products of different times stay apart, too, and a sum is added up as its terms are computed.
    spare_memory: int = 0

    # Whether convolutions have a part of their windows in memory at a time.
    blocks_of_windows: bool = True

    # --- slices ----------------------------------------------------------------------------------------------------

    # Slices move up through at most this many elementwise ops.
    max_slice_steps: int = 8
    # Elementwise results whose operands are joined from parts are computed in at most so many boxes
    # (the interior and the edges in three dimensions), from so many elements on.
    max_boxes: int = 27
    min_split_elements: int = 1 << 13
    # Each further box saves at least so many bytes: a kernel over an edge takes some 6 us, most of it
    # where rows are short.
    box_bytes: int = 1 << 19
    # Whether kernels read padded and rolled values where they come from; in at most so many runs
    # along an axis, in rows of at least so many elements.
    reads_at_offsets: bool = True
    max_runs: int = 9
    min_offset_row: int = 24
    # The edges of each read with a jump along the last axis, from the fourth on, take as long as
    # writing so many bytes of a row first. Measured with AVX-512: windows of 3 x 3 (6 such reads)
    # break even at rows of 1,200 to 2,000 bytes, of 5 x 5 (20) beyond 4,096, of 1 x 5 (4) at some
    # 400. Of larger windows a bilateral filter by 7 x 7 was measured: 0.9 of the time with edges.
    free_edge_reads: int = 3
    max_edge_reads: int = 24
    edge_read_bytes: int = 430
    # Kernels load from so many computed positions, or more, of a table themselves; 0: none do. Beside the kernel it takes two
    # short steps that check the indices.
    min_table_reads: int = 1 << 10
    # One value at several places is put into zeros once, if that takes at most this part more
    # memory than one place.
    max_pad_growth: float = 0.25
    # The terms of a sum of places are computed where they are summed if that takes at most so many
    # operations (a tanh as many as 12 additions) for each byte per element that is not written or
    # read. They are looked for among so many values.
    gathered_operations: int = 6
    max_gathered_nodes: int = 400
