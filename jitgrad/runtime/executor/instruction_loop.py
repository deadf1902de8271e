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

from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code
from jitgrad.compiler.lowering.layout import ArgSlot

KERNEL, SGEMM, DGEMM, CALL, ROW_BLOCKS, RELOCATE, LOCAL_BLOCKS, STOP_IF, BLAS_KERNEL = range(9)
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

_SOURCE = '''
def gemm(kind, fn, t, m, n, a, b, c):
    if kind == {SGEMM}:
        call_sgemm(fn, t, m, n, a, b, c)
    else:
        call_dgemm(fn, t, m, n, a, b, c)


def rows(kind, fn, t, start, stop):
    item = 8
    if kind == {SGEMM}:
        item = 4
    step = item
    if t[3] == 0:
        step = item * t[7]
    gemm(kind, fn, t, stop - start, t[1], t[6] + start * step, t[8], t[11] + start * item * t[12])


def gemm_block(kind, fn, t, start, stop):
    item = 8
    if kind == {SGEMM}:
        item = 4
    if t[13] > 1:
        for k in range(start, stop):
            gemm(kind, fn, t, t[0], t[1], t[6] + k * t[14], t[8] + k * t[15], t[11] + k * t[16])
    elif t[0] >= t[1]:
        rows(kind, fn, t, start, stop)
    else:
        step = item
        if t[4] != 0:
            step = item * t[9]
        gemm(kind, fn, t, t[0], stop - start, t[6], t[8] + start * step, t[11] + start * item)


def row_block(count, table, start, stop):
    for k in range(count):
        t = table + k * 64
        if t[0] == {KERNEL}:
            call_kernel(t[1], t[2], start * t[5], stop * t[5])
        else:
            rows(t[0], t[1], t[2], start, stop)


def local_block(count, table, start, stop, b):
    d = table[2]
    given = d[0]
    space = d[6]
    k = 0
    while not atomic_replace(space, 0, 0, 1):
        k += 1
        space += d[7]
        if k % d[8] == 0:
            space = d[6]
            pause()
    args = space + 64
    for k in range(d[1]):
        args[k] = given[k]
    memory = args + (d[1] * 8 + 63) // 64 * 64
    where = d[2]
    offset = d[3]
    step = d[4]
    for k in range(d[5]):
        args[where[k]] = memory + offset[k] - b * step[k]
    for k in range(count):
        t = table + (k + 1) * 64
        call_kernel(t[1], args + (t[2] - given), start * t[5], stop * t[5])
    atomic_store(space, 0, 0)


def run_block(kind, fn, args, n, block_size, k):
    stop = (k + 1) * block_size
    if stop > n:
        stop = n
    if kind == {KERNEL}:
        call_kernel(fn, args, k * block_size, stop)
    elif kind == {ROW_BLOCKS}:
        row_block(fn, args, k * block_size, stop)
    elif kind == {LOCAL_BLOCKS}:
        local_block(fn, args, k * block_size, stop, k)
    else:
        gemm_block(kind, fn, args, k * block_size, stop)


def claim(c):
    ticket = atomic_load(c, {TICKET})
    k = ticket & 0xFFFFFFFF
    if k >= atomic_load(c, {BLOCKS}):
        return 0
    kind = atomic_load(c, {KIND})
    fn = atomic_load(c, {FUNCTION})
    args = atomic_load(c, {ARGS})
    n = atomic_load(c, {ITERATIONS})
    block_size = atomic_load(c, {BLOCK_SIZE})
    if atomic_replace(c, {TICKET}, ticket, ticket + 1):
        if atomic_load(c, {CANCELLED}) != atomic_load(c, {TABLE}):
            run_block(kind, fn, args, n, block_size, k)
        atomic_add(c, {FINISHED}, 1)
    return 1


def park(c, ticket):
    mutex = c + 8 * {MUTEX}
    call_c(c[{LOCK}], mutex, 0, 0)
    atomic_add(c, {SLEEPERS}, 1)
    while atomic_load(c, {TICKET}) == ticket and atomic_load(c, {STOPPED}) == 0:
        call_c(c[{WAIT}], c + 8 * {CONDITION}, mutex, 0)
    atomic_add(c, {SLEEPERS}, -1)
    call_c(c[{UNLOCK}], mutex, 0, 0)


def wake(c):
    ticket = atomic_load(c, {TICKET})
    wanted = atomic_load(c, {BLOCKS}) - (ticket & 0xFFFFFFFF)
    if wanted > {_FAN_OUT}:
        wanted = {_FAN_OUT}
    if wanted > 0 and atomic_load(c, {SLEEPERS}) > 0:
        mutex = c + 8 * {MUTEX}
        call_c(c[{LOCK}], mutex, 0, 0)
        for k in range(wanted):
            call_c(c[{SIGNAL}], c + 8 * {CONDITION}, 0, 0)
        call_c(c[{UNLOCK}], mutex, 0, 0)


def keep_clear(c):
    cpu = call_c(c[{CPU}], 0, 0, 0)
    if cpu != c[{CALLER_CPU}] and 0 <= cpu < {MASK_WORDS} * 64:
        c[{CALLER_CPU}] = cpu
        for k in range({MASK_WORDS}):
            c[{OTHERS} + k] = c[{ALLOWED} + k]
        c[{OTHERS} + (cpu >> 6)] = c[{ALLOWED} + (cpu >> 6)] & ~(1 << (cpu & 63))
        for k in range(min(c[{WORKERS}], {MAX_PLACED})):
            thread = atomic_load(c, {THREADS} + k)
            if thread != 0:
                call_c(c[{SET_AFFINITY}], thread, {MASK_WORDS} * 8, c + 8 * {OTHERS})


def share(c, kind, fn, args, n, block_size, blocks):
    job = (atomic_load(c, {TICKET}) >> 32) + 1
    atomic_store(c, {TICKET}, job << 32 | 0xFFFFFFFF)
    atomic_store(c, {KIND}, kind)
    atomic_store(c, {FUNCTION}, fn)
    atomic_store(c, {ARGS}, args)
    atomic_store(c, {ITERATIONS}, n)
    atomic_store(c, {BLOCK_SIZE}, block_size)
    atomic_store(c, {BLOCKS}, blocks)
    atomic_store(c, {FINISHED}, 0)
    if c[{CPU}] != 0:
        keep_clear(c)
    atomic_store(c, {TICKET}, job << 32)
    wake(c)
    while claim(c):
        pass
    spins = 0
    while atomic_load(c, {FINISHED}) < blocks:
        pause()
        spins += 1
        if spins > {_YIELD_AFTER}:
            call_c(c[{YIELD}], 0, 0, 0)


def launch(c, table, owned, kind, fn, args, n, block_size):
    if block_size < 1:
        block_size = n
    blocks = 0
    if n > 0:
        blocks = (n - 1) // block_size + 1
    if owned and 1 < blocks < 0x7FFFFFFF:
        share(c, kind, fn, args, n, block_size, blocks)
    else:
        for k in range(blocks):
            if atomic_load(c, {CANCELLED}) != table:
                run_block(kind, fn, args, n, block_size, k)


def lock_blas(b):
    while not atomic_replace(b, {BLAS_LOCK}, 0, 1):
        pause()


def enter_blas(c):
    b = c[{BLAS_STATE}]
    lock_blas(b)
    if atomic_add(b, {BLAS_USERS}, 1) == 0 and c[{SET_BLAS_THREADS}] != 0:
        atomic_store(b, {BLAS_BEFORE}, call_c(c[{BLAS_THREADS}], 0, 0, 0))
        call_c(c[{SET_BLAS_THREADS}], 1, 0, 0)
    atomic_store(b, {BLAS_LOCK}, 0)


def leave_blas(c):
    b = c[{BLAS_STATE}]
    lock_blas(b)
    if atomic_add(b, {BLAS_USERS}, -1) == 1 and c[{SET_BLAS_THREADS}] != 0:
        call_c(c[{SET_BLAS_THREADS}], atomic_load(b, {BLAS_BEFORE}), 0, 0)
    atomic_store(b, {BLAS_LOCK}, 0)


def multiply(c, table, owned, kind, fn, t):
    n = t[13]
    work = t[0] * t[1] * t[2]
    band = 1
    if n == 1:
        n = max(t[0], t[1])
        work = min(t[0], t[1]) * t[2]
        band = min(max((n - 1) // c[{CPUS}] + 1, {_GEMM_MIN_BAND}), {_GEMM_MAX_BAND})
        if n <= {_GEMM_MAX_HALVED}:
            band = max(16, (n + 1) // 2)
    block_size = max(max(band, {_GEMM_WORK} // max(work, 1) + 1), (n - 1) // {_GEMM_MAX_BLOCKS} + 1)
    even = (n - 1) // ((n - 1) // block_size + 1) + 1
    block_size = (even + min(band, 16) - 1) // min(band, 16) * min(band, 16)
    enter_blas(c)
    launch(c, table, owned, kind, fn, t, n, block_size)
    leave_blas(c)


def relocate(arguments, bases, where, buffer, offset, n):
    for k in range(n):
        arguments[where[k]] = bases[buffer[k]] + offset[k]


def run(c, table, count):
    owned = c[{WORKERS}] > 0 and atomic_replace(c, {OWNED}, 0, 1)
    if owned:
        atomic_store(c, {TABLE}, table)
    k = 0
    while k < count and atomic_load(c, {CANCELLED}) != table:
        t = table + k * 64
        k += 1
        if t[0] == {KERNEL}:
            launch(c, table, owned, {KERNEL}, t[1], t[2], t[3], t[4])
        elif t[0] == {BLAS_KERNEL}:
            enter_blas(c)
            launch(c, table, owned, {KERNEL}, t[1], t[2], t[3], t[4])
            leave_blas(c)
        elif t[0] == {CALL}:
            call_kernel(t[1], t[2], 0, t[3])
        elif t[0] == {ROW_BLOCKS}:
            enter_blas(c)
            launch(c, table, owned, {ROW_BLOCKS}, t[1], table + k * 64, t[3], t[4])
            leave_blas(c)
            k += t[1]
        elif t[0] == {LOCAL_BLOCKS}:
            launch(c, table, owned, {LOCAL_BLOCKS}, t[1], t, t[3], t[4])
            k += t[1]
        elif t[0] == {RELOCATE}:
            p = t[2]
            relocate(p[0], p[1], p[2], p[3], p[4], t[3])
        elif t[0] == {STOP_IF}:
            if t[2][0][0] != 0:
                k = count
        else:
            multiply(c, table, owned, t[0], t[1], t[2])
    if owned:
        atomic_store(c, {OWNED}, 0)


def work(c):
    spins = 0
    while atomic_load(c, {STOPPED}) == 0:
        ticket = atomic_load(c, {TICKET})
        if claim(c):
            spins = 0
        elif spins < {_SPINS}:
            pause()
            spins += 1
        else:
            park(c, ticket)
            wake(c)
            spins = 0


def loop(c, table, count):
    if count == {WORKER}:
        work(c)
    else:
        run(c, table, count)
'''


@dataclass(frozen=True, slots=True)
class Instruction:
    """A row of the table before its arguments have addresses: ``code`` over ``iterations``, in blocks of ``block_size``.

    An argument that is code is its address.

    ``per_row``: for kernels that run block by block with others, the iterations of a row. ``declines``: the code may leave
    its step to NumPy. It has two more arguments then, an address and a number, and says so by storing the number there.
    """

    kind: int
    code: int | CodeObject
    args: Sequence[ArgSlot | CodeObject]
    iterations: int = 1
    block_size: int = 1
    per_row: int = 0
    declines: bool = False


def loop_source() -> str:
    """The control code of the loops, with the control block's layout filled in."""
    return _SOURCE.format_map(_LAYOUT)


@cache
def loop() -> CodeObject:
    """``void (int64_t **control, int64_t table, int64_t count)``: run ``count`` instructions at ``table``.

    With `WORKER` for ``count``: take part in the jobs of others until the control block says stop. LLVM compiles it in the
    background; reading the address waits for it.
    """
    return compile_control_code(loop_source(), "loop", "thread_pool", wait=False)
