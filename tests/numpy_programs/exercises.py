"""Short exercises with NumPy: index tricks, strides, ufunc methods, bits, counts, sets."""

import numpy as np
from numpy.lib import stride_tricks

def main(jit):
    rng = np.random.RandomState(0)
    Z = np.zeros(10); Z[4] = 1
    out = [Z.sum()]
    Z = np.arange(50)[::-1]; out += [Z[0], Z[7]]
    Z = np.arange(9).reshape(3, 3)
    nz = np.nonzero([1, 2, 0, 0, 4, 0]); out += [nz[0].sum()]
    Z = np.ones((6, 6)); Z[1:-1, 1:-1] = 0; out.append(Z.sum())
    Z = np.pad(np.ones((5, 5)), pad_width=1, mode='constant', constant_values=0); out.append(Z.sum())
    Z = np.diag(1 + np.arange(4), k=-1); out.append(Z.sum())
    Z = np.zeros((8, 8), dtype=int); Z[1::2, ::2] = 1; Z[::2, 1::2] = 1; out.append((Z * np.arange(8)).sum())
    out += list(np.unravel_index(99, (6, 7, 8)))
    Z = np.tile(np.array([[0, 1], [1, 0]]), (4, 4)); out.append(Z.sum())
    Z = np.array(rng.uniform(size=(5, 5))); Z = (Z - np.mean(Z)) / (np.std(Z)); out.append(Z[2, 3])
    Z = np.arange(11); Z[(3 < Z) & (Z < 8)] *= -1; out.append(Z.sum())
    Z = np.array(rng.uniform(-10, +10, 10)); out.append(np.copysign(np.ceil(np.abs(Z)), Z).sum())
    out.append(len(np.intersect1d(np.array(rng.randint(0, 10, 10)), np.array(rng.randint(0, 10, 10)))))
    Z = np.array(rng.uniform(0, 5, 10))
    out += [(Z - Z % 1).sum(), (Z // 1).sum(), np.floor(Z).sum(), Z.astype(int).sum(), np.trunc(Z).sum()]
    Z = np.zeros((5, 5)); Z += np.arange(5); out.append(Z.sum())
    Z = np.linspace(0, 1, 11, endpoint=False)[1:]; out.append(Z.sum())
    Z = np.array(rng.uniform(size=10)); Z = np.sort(Z); out.append(Z[3])
    out.append(np.add.reduce(np.arange(10)))
    Z = np.array(rng.uniform(size=(10, 2))); X, Y = Z[:, 0], Z[:, 1]
    R = np.sqrt(X ** 2 + Y ** 2); T = np.arctan2(Y, X); out += [R.sum(), T.sum()]
    Z = np.array(rng.uniform(size=10)); Z[Z.argmax()] = 0; out.append(Z.max())
    X, Y = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 5)); out.append((X * Y).sum())
    X = np.arange(8); Y = X + 0.5; C = 1.0 / np.subtract.outer(X, Y); out.append(np.linalg.det(C))
    Z = np.arange(100); v = 37.4; out.append(Z[(np.abs(Z - v)).argmin()])
    X, Y = np.atleast_2d(np.array(rng.uniform(size=4)), np.array(rng.uniform(size=4)))
    D = np.sqrt((X - X.T) ** 2 + (Y - Y.T) ** 2); out.append(D.sum())
    for index, value in np.ndenumerate(np.arange(4).reshape(2, 2)): out.append(index[0] * value)
    for index in np.ndindex(2, 2): out.append(index[1])
    X, Y = np.meshgrid(np.linspace(-1, 1, 10), np.linspace(-1, 1, 10)); G = np.exp(-((np.hypot(X, Y)) ** 2 / 2.0)); out.append(G.sum())
    Z = np.zeros((4, 4)); np.put(Z, np.array([1, 5, 11]), 1); out.append(Z.sum())
    X = np.array(rng.uniform(size=(5, 10))); Y = X - X.mean(axis=1, keepdims=True); out.append(np.abs(Y).sum())
    Z = np.array(rng.randint(0, 10, (3, 3))); out += list(Z[Z[:, 1].argsort()].ravel())
    Z = np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0]]); out.append((~Z.any(axis=0)).any())
    Z = np.ones(10); I = np.array(rng.randint(0, len(Z), 20)); Z += np.bincount(I, minlength=len(Z)); out += list(Z)
    np.add.at(Z, I, 1); out += list(Z)
    X = [1, 2, 3, 4, 5, 6]; I = [1, 3, 9, 3, 4, 1]; out += list(np.bincount(I, X))
    w, h = 4, 4; I = np.array(rng.randint(0, 2, (h, w, 3))).astype(np.ubyte)
    colors = np.unique(I.reshape(-1, 3), axis=0); out.append(len(colors))
    A = np.array(rng.randint(0, 10, (3, 4, 3, 4))); out.append(A.sum(axis=(-2, -1)).max())
    D = np.array(rng.uniform(0, 1, 100)); S = np.array(rng.randint(0, 10, 100)); out += list(np.bincount(S, weights=D) / np.bincount(S))
    A, B = np.array(rng.uniform(size=(5, 5))), np.array(rng.uniform(size=(5, 5))); out += [np.sum(A * B.T, axis=1)[1], np.einsum("ij,ji->i", A, B)[2], np.diag(np.dot(A, B))[3]]
    Z = np.array([1, 2, 3, 4, 5]); nz = 3; Z0 = np.zeros(len(Z) + (len(Z) - 1) * nz); Z0[::nz + 1] = Z; out.append(Z0[4])
    A = np.arange(25).reshape(5, 5); A[[0, 1]] = A[[1, 0]]; out.append(A[0, 2])
    faces = np.array(rng.randint(0, 100, (10, 3))); F = np.roll(faces.repeat(2, axis=1), -1, axis=1); F = F.reshape(len(F) * 3, 2); F = np.sort(F, axis=1)
    out.append(len(np.unique(F, axis=0)))
    C = np.bincount([1, 1, 2, 3, 4, 4, 6]); out += list(np.repeat(np.arange(len(C)), C))
    def moving_average(a, n=3):
        ret = np.cumsum(a, dtype=float); ret[n:] = ret[n:] - ret[:-n]; return ret[n - 1:] / n
    out += list(jit(moving_average)(np.arange(20)))
    out.append(stride_tricks.sliding_window_view(np.arange(10), window_shape=3).sum())
    Z = np.arange(10, dtype=np.int64); S = stride_tricks.as_strided(Z, (7, 4), (Z.itemsize, Z.itemsize)); out += list(S[:, 2])
    Z = np.array(rng.uniform(size=(10, 10))); U, S, V = np.linalg.svd(Z); out.append(np.sum(S > 1e-10))
    out.append(np.bincount(np.array(rng.randint(0, 10, 50))).argmax())
    Z = np.array(rng.randint(0, 5, (10, 10))); n = 3; i = 1 + (Z.shape[0] - 3); j = 1 + (Z.shape[1] - 3)
    C = stride_tricks.as_strided(Z, shape=(i, j, n, n), strides=Z.strides + Z.strides); out.append(C.sum(axis=(2, 3)).max())
    Z = np.array(rng.permutation(10)); n = 5; out += list(Z[np.argpartition(-Z, n)[:n]].sum(keepdims=True)); 
    def cartesian(arrays):
        arrays = [np.asarray(a) for a in arrays]; shape = (len(x) for x in arrays)
        ix = np.indices(shape, dtype=int); ix = ix.reshape(len(arrays), -1).T
        for n, arr in enumerate(arrays): ix[:, n] = arrays[n][ix[:, n]]
        return ix
    out.append(cartesian(([1, 2, 3], [4, 5], [6, 7])).sum())
    A = np.array(rng.randint(0, 5, (8, 3))); B = np.array(rng.randint(0, 5, (2, 2))); C = (A[..., np.newaxis, np.newaxis] == B); out.append(len(np.where(C.any((3, 1)).all(1))[0]))
    I = np.array([0, 1, 2, 3, 15, 16, 32, 64, 128], dtype=np.uint8); out.append(np.unpackbits(I[:, np.newaxis], axis=1).sum()); out += list(np.packbits(np.unpackbits(I)))
    B = ((I.reshape(-1, 1) & (2 ** np.arange(8))) != 0).astype(int); out.append(B[:, ::-1].sum())
    X = np.array(rng.normal(size=100)); idx = np.array(rng.randint(0, X.size, (50, X.size))); means = X[idx].mean(axis=1); out += list(np.percentile(means, [2.5, 97.5]))
    return np.array([float(v) for v in out])
