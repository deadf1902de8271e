"""Algorithms on graphs: PageRank, shortest paths, np.minimum.at, components, k-means."""

import numpy as np


def pagerank(A, d):
    n = A.shape[0]
    out = A.sum(axis=1)
    M = np.where(out[:, None] > 0, A / np.where(out == 0, 1, out)[:, None], 1.0 / n)
    r = np.ones(n) / n
    for _ in range(10):
        r = (1 - d) / n + d * M.T.dot(r)
    return r


def floyd(W):
    D = W.copy()
    np.fill_diagonal(D, 0)
    for k in range(len(D)):
        D = np.minimum(D, D[:, k, np.newaxis] + D[np.newaxis, k, :])
    return D


def bellman(src, n, u, v, w):
    dist = np.full(n, np.inf)
    dist[src] = 0
    for _ in range(n - 1):
        np.minimum.at(dist, v, dist[u] + w)
    return dist


def deg(u, v, n):
    d = np.zeros(n, dtype=int)
    np.add.at(d, u, 1)
    np.add.at(d, v, 1)
    mx = np.zeros(n, dtype=int)
    np.maximum.at(mx, u, v)
    return d, mx


def laplacian(A):
    A = np.maximum(A, A.T)
    D = np.diag(A.sum(1))
    L = D - A
    w, V = np.linalg.eigh(L)
    return w, np.abs(V[:, 1]), np.linalg.matrix_power(A, 3).trace() / 6, L


def components(A):
    n = len(A)
    lab = np.arange(n)
    for _ in range(n):
        nb = np.where(A > 0, lab[None, :], n)
        lab = np.minimum(lab, nb.min(axis=1))
    return lab, np.unique(lab).size


def kmeans(x, c):
    for _ in range(4):
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        lab = d.argmin(1)
        for k in range(len(c)):
            m = lab == k
            if m.any():
                c[k] = x[m].mean(axis=0)
    return c, lab


def run(jit, seed, n):
    r = np.random.default_rng(seed)
    A = np.array((r.random((n, n)) < 0.4) * 1.0)
    W = np.array(np.where(r.random((n, n)) < 0.5, r.random((n, n)), np.inf))
    u, v, w = np.array(r.integers(0, n, 2 * n)), np.array(r.integers(0, n, 2 * n)), np.array(r.random(2 * n))
    S = np.maximum(A, A.T)
    return (
        jit(pagerank)(A, 0.85),
        jit(floyd)(W),
        jit(bellman)(0, n, u, v, w),
        jit(deg)(u, v, n),
        jit(laplacian)(A)[0],
        jit(laplacian)(A)[2:],
        jit(components)(S),
        jit(kmeans)(np.array(r.normal(size=(n, 2))), np.array(r.normal(size=(3, 2)))),
    )


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (tuple, list)) else [np.ravel(x)]


def main(jit):
    return np.concatenate([np.nan_to_num(x.real.astype(float)) for x in flat(run(jit, 0, 6))])
