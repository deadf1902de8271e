"""Numerical recipes that change arrays in place: LU, Jacobi, Gauss-Seidel, Romberg, masks, permutations, a sieve."""

import numpy as np


def ludcmp(A):
    a = A.copy()
    n = len(a)
    indx = np.zeros(n, dtype=int)
    d = 1.0
    vv = 1 / np.abs(a).max(axis=1)
    for k in range(n):
        imax = k + np.argmax(vv[k:] * np.abs(a[k:, k]))
        if k != imax:
            a[[imax, k]] = a[[k, imax]]
            d = -d
            vv[imax] = vv[k]
        indx[k] = imax
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, indx, d


def jacobi_sweep(A):
    A = A.copy()
    n = A.shape[0]
    V = np.eye(n)
    for p in range(n - 1):
        for q in range(p + 1, n):
            th = 0.5 * np.arctan2(2 * A[p, q], A[q, q] - A[p, p])
            c, s = np.cos(th), np.sin(th)
            J = np.eye(n)
            J[p, p] = c
            J[q, q] = c
            J[p, q] = s
            J[q, p] = -s
            A = J.T @ A @ J
            V = V @ J
    return A, V


def gs(A, b, iters=5):
    x = np.zeros_like(b)
    for _ in range(iters):
        for i in range(len(b)):
            x[i] = (b[i] - A[i, :i] @ x[:i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


def mgs(A):
    Q = A.astype(float)
    n = A.shape[1]
    R = np.zeros((n, n))
    for j in range(n):
        R[j, j] = np.linalg.norm(Q[:, j])
        Q[:, j] /= R[j, j]
        R[j, j + 1 :] = Q[:, j] @ Q[:, j + 1 :]
        Q[:, j + 1 :] -= np.outer(Q[:, j], R[j, j + 1 :])
    return Q, R


def cg(A, b):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b)):
        Ap = A @ p
        al = rs / (p @ Ap)
        x += al * p
        r -= al * Ap
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p = r + new / rs * p
        rs = new
    return x


def simpson(f, a, b, n=10):
    x = np.linspace(a, b, n + 1)
    y = f(x)
    return (b - a) / n / 3 * (y[0] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum() + y[-1])


def romberg(a, b, m=5):
    R = np.zeros((m, m))
    h = b - a

    def f(x):
        return np.exp(-(x**2))

    R[0, 0] = h / 2 * (f(a) + f(b))
    for i in range(1, m):
        h /= 2
        R[i, 0] = R[i - 1, 0] / 2 + h * np.sum(f(a + h * np.arange(1, 2**i, 2)))
        for k in range(1, i + 1):
            R[i, k] = R[i, k - 1] + (R[i, k - 1] - R[i - 1, k - 1]) / (4**k - 1)
    return R


def masks(x):
    out = x.copy()
    out[out < 0] = 0
    out[np.abs(x) > 1] *= 2
    out[1:4] += out[:3]
    out[::2] -= 1
    out[[0, 2]] = out[[2, 0]]
    m = (x > 0) & (x < 1)
    y = np.zeros(x.shape)
    y[m] = np.log(x[m])
    y[~m] = -1
    np.add.at(y, [0, 0, 1], 1.5)
    idx = np.nonzero(m)[0]
    z = np.zeros((3, 4))
    z[1] = 2
    z[:, 2] += np.array([1, 2, 3])
    z[0, ...] = np.arange(4)
    z[-1, -1] = 9
    z.flat[3] = 5
    z.T[0] += 10
    np.put(z, [0, 5], [-1, -2])
    z[z == 10] = np.nan
    return out, y, idx, np.nansum(z), np.nan_to_num(z), np.where(np.isnan(z))[0]


def perm_cycle(p):
    a = np.arange(len(p))
    inv = np.empty(len(p), int)
    inv[p] = a
    sgn = np.linalg.det(np.eye(len(p))[p])
    return inv, np.argsort(p), sgn, p[p], np.take(a, p), a[::-1][p]


def sieve(n):
    s = np.ones(n + 1, dtype=bool)
    s[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if s[i]:
            s[i * i :: i] = False
    return np.flatnonzero(s)


def run(jit, seed, n):
    r = np.random.default_rng(seed)
    A = np.array(r.normal(size=(n, n)))
    S = A @ A.T + n * np.eye(n)
    b = np.array(r.normal(size=n))
    return (
        jit(ludcmp)(A),
        jit(jacobi_sweep)(S[:4, :4]),
        jit(gs)(S, b),
        jit(mgs)(A),
        jit(cg)(S, b),
        jit(simpson)(np.sin, 0.0, 2.0),
        jit(romberg)(0.0, 1.0),
        jit(masks)(b),
        jit(perm_cycle)(np.array(r.permutation(n))),
        jit(sieve)(30),
    )


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (tuple, list)) else [np.ravel(x)]


def main(jit):
    return np.concatenate([np.nan_to_num(x.real.astype(float)) for x in flat(run(jit, 0, 6))])
