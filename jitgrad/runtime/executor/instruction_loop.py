"""The native half of the runtime: the loop over an instruction table, and the loop of a worker.

An instruction is eight int64 words, ``[kind, function, args, n, block_size, 0, 0, 0]``:

====  =======================================================================================
kind  meaning
====  =======================================================================================
0     kernel over ``n`` iterations in blocks of ``block_size``. Block ``k`` is always exactly
      ``function(args, k * block_size, min(n, (k + 1) * block_size))``, on whatever thread
1, 2  ``cblas_sgemm``, ``cblas_dgemm`` at ``function``, row-major; ``args`` is a table of M, N,
      K, transpose A, transpose B, alpha bits, A, lda, B, ldb, beta bits, C, ldc, batch, and
      the bytes from one matrix of the batch to the next in A, B, C. ``n`` and ``block_size``
      are not read
3     ``function(args, 0, n)`` once
4     the next ``function`` instructions (kernels and products of no batch) for ``n`` rows, in
      blocks of ``block_size`` rows: all of them for the rows of one block, then for those of
      the next. A kernel's sixth word is the number of its iterations for a row
5     relocates ``n`` arguments: ``args`` is a table of five addresses, of arrays arguments,
      bases, where, buffer and offset; ``arguments[where[k]] = bases[buffer[k]] + offset[k]``
6     like 4, for kernels some of whose memory exists for one block at a time. ``args`` is a table
      of nine words: the address and number of their arguments, the addresses of the arrays where,
      offset and step and their length, the address of the workspaces, the bytes of one, and how
      many there are. A thread takes a workspace (a word that says so, a line of 64 bytes, a copy
      of the arguments, the memory); in the copy, for block ``b``,
      ``arguments[where[k]] = memory + offset[k] - b * step[k]``
7     ends the run if the first argument is the address of a word that is not 0
8     like 0, for code that calls BLAS, which takes one thread meanwhile
9     runs another table ``n`` times; ``function`` is the code of these loops, and ``block_size``
      the number of regions of memory. ``args`` is a table: the address of that table and its
      number of instructions, the address of its bases, the addresses of two arrays (the bytes by
      which each region moves from one turn to the next, and the copies), the numbers of copies
      before the first turn and after each turn, the addresses of ``memcpy`` and of the word in
      which a step of a turn that declines stores its number, then the addresses of the regions in
      the first turn, and those of further memory. If a step declines, the loop does; its sixth
      word says which argument is the first for that. A copy is three words: two places and the
      number of bytes; the place ``k`` is where region ``k`` is now, or word ``-k`` of ``args``
====  =======================================================================================

How the pool shares a kernel: one word, the ticket, holds the number of the job (high half) and the next block (low
half). A thread claims a block by replacing the ticket with its successor. The ticket is closed before the description of
the next job is written and opened after, so a worker that read a mixture cannot claim. The caller waits for the count of
finished blocks, never for a worker: a worker that sleeps through a job costs nothing. Idle workers spin for some
microseconds, then sleep on a condition variable. Woken workers wake others in turn, so that waking many takes the caller
little time. Workers may run on every CPU of the process but the caller's: the scheduler would leave a worker that wakes up
there beside the caller for milliseconds (most of all in virtual machines, where a sleeping CPU counts as busy), and the
step would take as long as on one thread.

A product is shared in the same way, with BLAS on one thread in each block: bands of rows or columns, or matrices of a
batch. Its sizes and the machine's number of CPUs decide the blocks, never the number of threads (OpenBLAS rounds
differently at the edges of its operands). BLAS's own threads were up to ten times slower where other processes want the
cores too, because the fastest waits for the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code
from jitgrad.backends.llvm.effort import BRANCHES
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.runtime.executor.loop_text import SOURCE

KERNEL, SGEMM, DGEMM, CALL, ROW_BLOCKS, RELOCATE, LOCAL_BLOCKS, STOP_IF, BLAS_KERNEL, REPEAT = range(10)
REGIONS = 9  # the first word of the addresses of regions among the arguments of REPEAT
BLOCK_WORDS = 9  # of the table of LOCAL_BLOCKS
INSTRUCTION_WORDS = 8
GEMM_ARGS = 17
WORKER = -1  # in place of a number of instructions

# words of the control block; words written by different threads are a cache line (8 words) or more apart
TICKET, FINISHED, SLEEPERS, STOPPED, OWNED, WORKERS = 0, 16, 32, 48, 64, 65
KIND, FUNCTION, ARGS, ITERATIONS, BLOCK_SIZE, BLOCKS = 96, 97, 98, 99, 100, 101
LOCK, UNLOCK, WAIT, SIGNAL, YIELD = range(112, 117)  # addresses of C functions
BLAS_THREADS, SET_BLAS_THREADS, BLAS_STATE = 117, 118, 119  # two functions; the address of the words of all pools
CPU, SET_AFFINITY, CALLER_CPU = 120, 121, 122  # two functions (0 where the system has none); the CPU that workers avoid
CPUS = 123  # the number of CPUs of the machine
SELF = 95  # the address of the control block, as the loop's own code takes it
CANCELLED, TABLE = 124, 125  # the table whose remaining blocks are skipped, and that of the thread that shares kernels
MUTEX, CONDITION = 128, 144  # 128 bytes each, more than any C library needs
ALLOWED, OTHERS, THREADS = 160, 176, 192  # CPUs of the process; the same without the caller's; the system's ids of the workers
MASK_WORDS, MAX_PLACED = 16, 15  # 1,024 CPUs; only so many workers are placed, which costs 1 us each
CONTROL_WORDS = 256

_SPINS = 400  # pauses of about 50 ns: longer than the gap between two kernels, shorter than a time slice
_FAN_OUT = 2  # the sleepers that the caller wakes, and each of them in turn: a system call (2 us) each
_YIELD_AFTER = 2000  # spins of the caller before it assumes that a worker has lost its core
_GEMM_WORK = 1 << 17  # multiplications of a block, some 4 us: below, sharing costs more than it saves
# rows of a block: each block packs the other operand again (1024 x 512 x 784 by bands of 128 takes up to 1.3 of the time)
_GEMM_MIN_BAND, _GEMM_MAX_BAND = 128, 512
_GEMM_MAX_HALVED = 255  # products with fewer rows than two such bands are cut in halves (bands of 16 run at 2/3 speed)
_GEMM_MAX_BLOCKS = 32  # at most: enough for an even load on many cores

# words that all pools of the process share, because the number of BLAS threads is global
BLAS_LOCK, BLAS_USERS, BLAS_BEFORE = 0, 1, 2

_LAYOUT = {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)}


@dataclass(frozen=True, slots=True)
class Instruction:
    """A row of the table before its arguments have addresses: ``code`` over ``iterations``, in blocks of ``block_size``.

    An argument that is code is its address.

    ``per_row``: for kernels that run block by block with others, the iterations of a row. ``declines``: the code may leave
    its step to NumPy. It has two more arguments then, an address and a number, and says so by storing the number there.
    ``repeated``: of a loop, what a frame needs to run its turns (`jitgrad.runtime.loop_call.Repeated`).
    """

    kind: int
    code: int | CodeObject
    args: Sequence[ArgSlot | CodeObject]
    iterations: int = 1
    block_size: int = 1
    per_row: int = 0
    declines: bool = False
    repeated: Any = None


def loop_source() -> str:
    """The control code of the loops, with the control block's layout filled in."""
    return SOURCE.format_map(_LAYOUT)


@cache
def loop() -> CodeObject:
    """``void (int64_t **control, int64_t table, int64_t count)``: run ``count`` instructions at ``table``.

    With `WORKER` for ``count``: take part in the jobs of others until the control block says stop. With `WORKER` minus a
    number of instructions: run these for an instruction of this thread, which shares its kernels. LLVM compiles it in the
    background; reading the address waits for it.
    """
    return compile_control_code(loop_source(), "loop", "thread_pool", effort=BRANCHES, wait=False)
