"""Tables filled in loops: edit distance, warping, Viterbi, value iteration, shortest paths, windows by strides."""

import numpy as np
import functools

def levenshtein(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1); d[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return d[-1, -1]

def dtw(x, y):
    D = np.full((len(x) + 1, len(y) + 1), np.inf); D[0, 0] = 0
    for i in range(len(x)):
        for j in range(len(y)):
            D[i + 1, j + 1] = abs(x[i] - y[j]) + min(D[i, j + 1], D[i + 1, j], D[i, j])
    return D[-1, -1]

def viterbi(A, B, pi, obs):
    T = len(obs); delta = np.zeros((T, len(pi))); psi = np.zeros((T, len(pi)), dtype=int)
    delta[0] = np.log(pi) + np.log(B[:, obs[0]])
    for t in range(1, T):
        s = delta[t - 1][:, None] + np.log(A)
        psi[t] = np.argmax(s, axis=0); delta[t] = np.max(s, axis=0) + np.log(B[:, obs[t]])
    path = [int(np.argmax(delta[-1]))]
    for t in range(T - 1, 0, -1): path.insert(0, int(psi[t, path[0]]))
    return path

def value_iteration(P, R, gamma=0.9, tol=1e-6):
    V = np.zeros(P.shape[1])
    while True:
        Q = R + gamma * np.einsum('ast,t->sa', P, V)
        Vn = Q.max(axis=1)
        if np.max(np.abs(Vn - V)) < tol: return Vn, Q.argmax(axis=1)
        V = Vn

def floyd(D):
    D = D.copy()
    for k in range(len(D)): D = np.minimum(D, D[:, k:k + 1] + D[k:k + 1, :])
    return D

def conv_im2col(x, w):
    N, C, H, W = x.shape; O, _, kh, kw = w.shape
    s = x.strides
    cols = np.lib.stride_tricks.as_strided(x, (N, C, kh, kw, H - kh + 1, W - kw + 1), (s[0], s[1], s[2], s[3], s[2], s[3]))
    return np.tensordot(w, cols, axes=([1, 2, 3], [1, 2, 3])).transpose(1, 0, 2, 3)

def schmidt(A):
    Q = np.empty_like(A)
    for i in range(A.shape[1]):
        v = A[:, i].copy()
        for j in range(i): v -= np.dot(Q[:, j], A[:, i]) * Q[:, j]
        Q[:, i] = v / np.linalg.norm(v)
    return Q

def main(jit):
    rng = np.random.RandomState(5)
    out = [levenshtein("kitten", "sitting")]
    x, y = np.array(rng.normal(size=6)), np.array(rng.normal(size=5)); out.append(dtw(x, y))
    A = np.array(rng.dirichlet(np.ones(3).tolist(), 3)); B = np.array(rng.dirichlet([1.0] * 4, 3)); out += viterbi(A, B, np.ones(3) / 3, [0, 2, 1, 3, 3])
    P = np.array(rng.dirichlet([1.0] * 4, (2, 4))); R = np.array(rng.uniform(size=(4, 2))); V, pol = value_iteration(P, R); out += list(V) + list(pol)
    D = np.array(rng.uniform(1, 9, (5, 5))); np.fill_diagonal(D, 0); out.append(jit(floyd)(D).sum())
    im, w = np.array(rng.normal(size=(2, 2, 6, 6))), np.array(rng.normal(size=(3, 2, 3, 3))); out.append(jit(conv_im2col)(im, w).std())
    Q = schmidt(np.array(rng.normal(size=(4, 3)))); out.append(np.abs(Q.T @ Q - np.eye(3)).max() < 1e-10)
    board = np.array([[1, 0, 2], [0, 2, 0], [2, 0, 1]]); out += [np.any(np.all(board == 2, axis=1)), np.all(np.diag(np.fliplr(board)) == 2)]
    onehot = np.eye(4)[np.array([1, 3, 0])]; out.append(onehot.argmax(1).sum())
    recs = sorted(zip(x.tolist(), range(6)), key=lambda p: p[0]); out.append(recs[0][1])
    s = np.array_split(np.arange(10), 3); out += [len(p) for p in s]
    v, i, c = np.unique(np.array([3, 1, 3, 2, 1]), return_inverse=True, return_counts=True); out += list(v) + list(i) + list(c)
    out.append(np.apply_along_axis(lambda r: r[0] * r[-1], 1, im[0, 0]).sum()); out.append(np.vectorize(lambda a, b: a if a > b else b)(x[:5], y).sum())
    out.append(np.ma.masked_less(x, 0).sum()); out.append(np.polynomial.polynomial.polyval(0.5, [1, 2, 3])); out += list(np.polyfit(np.arange(6), x, 2))
    out.append(functools.reduce(np.dot, [A, A, A])[0, 0]); out.append(np.lexsort((np.array([1, 0, 1]), np.array([2, 2, 1])))[0])
    return np.array([float(v) for v in out])
