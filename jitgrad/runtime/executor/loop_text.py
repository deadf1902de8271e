"""The text of the native loop, in the int dialect; `jitgrad.runtime.executor.instruction_loop` fills in its numbers."""

from __future__ import annotations

SOURCE = '''
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


def address_of(p, k):
    if k < 0:
        return p[-k]
    return p[2][k]


def copy(p, first, count):
    for k in range(first, first + count):
        t = p[4] + k * 24
        call_c(p[7], address_of(p, t[0]), address_of(p, t[1]), t[2])


def repeat(c, table, owned, t):
    p = t[2]
    bases = p[2]
    step = p[3]
    for k in range(t[4]):
        bases[k] = p[{REGIONS} + k]
    copy(p, 0, p[5])
    count = p[1]
    if owned:
        count = {WORKER} - count
    turn = 0
    while turn < t[3] and atomic_load(c, {CANCELLED}) != table:
        turn += 1
        call_kernel(t[1], c + 8 * {SELF}, p[0], count)
        declined = p[8]
        if declined[0] != 0:
            declined[0] = 0
            q = p + 8 * t[5]
            atomic_store(q[0], 0, q[1])
            turn = t[3]
        copy(p, p[5], p[6])
        for k in range(t[4]):
            bases[k] = bases[k] + step[k]


def run(c, table, count):
    owned = c[{WORKERS}] > 0 and atomic_replace(c, {OWNED}, 0, 1)
    if owned:
        atomic_store(c, {TABLE}, table)
    steps(c, table, count, owned, table)
    if owned:
        atomic_store(c, {OWNED}, 0)


def steps(c, rows, count, owned, table):
    k = 0
    while k < count and atomic_load(c, {CANCELLED}) != table:
        t = rows + k * 64
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
            launch(c, table, owned, {ROW_BLOCKS}, t[1], rows + k * 64, t[3], t[4])
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
        elif t[0] == {REPEAT}:
            repeat(c, table, owned, t)
        else:
            multiply(c, table, owned, t[0], t[1], t[2])


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
    elif count < {WORKER}:
        steps(c, table, {WORKER} - count, 1, c[{TABLE}])
    else:
        run(c, table, count)
'''
