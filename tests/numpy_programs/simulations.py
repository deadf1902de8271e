"""Simulations: Runge-Kutta, Ising, waves with out=, bodies, automata, tridiagonal systems, random walks."""

import numpy as np
from numpy import pi, sin, cos, exp, sqrt, linspace, zeros, array, dot, cross

def rk45(f, t, y, h):
    k1 = f(t, y); k2 = f(t + h / 4, y + h * k1 / 4); k3 = f(t + 3 * h / 8, y + h * (3 * k1 + 9 * k2) / 32)
    k4 = f(t + 12 * h / 13, y + h * (1932 * k1 - 7200 * k2 + 7296 * k3) / 2197)
    k5 = f(t + h, y + h * (439 * k1 / 216 - 8 * k2 + 3680 * k3 / 513 - 845 * k4 / 4104))
    y4 = y + h * (25 * k1 / 216 + 1408 * k3 / 2565 + 2197 * k4 / 4104 - k5 / 5)
    return y4

def ising(spins, us, beta):
    for u, (i, j) in zip(us, np.ndindex(*spins.shape)):
        nb = spins[(i + 1) % 4, j] + spins[i - 1, j] + spins[i, (j + 1) % 4] + spins[i, j - 1]
        dE = 2 * spins[i, j] * nb
        if dE < 0 or u < np.exp(-beta * dE):
            spins[i, j] *= -1
    return spins

def wave(u, v, n, out):
    for _ in range(n):
        lap = np.zeros_like(u)
        lap[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        v += 0.1 * lap
        np.multiply(v, 0.99, out=v)
        np.add(u, 0.1 * v, out=u)
        np.clip(u, -1, 1, out=u)
    np.sum(u, axis=0, out=out)
    return u

def nbody(pos, vel, m, dt, n):
    for _ in range(n):
        d = pos[np.newaxis] - pos[:, np.newaxis]
        r3 = (np.sum(d ** 2, axis=-1) + 0.01) ** -1.5
        np.fill_diagonal(r3, 0)
        acc = np.einsum('ijk,ij,j->ik', d, r3, m)
        vel = vel + acc * dt; pos = pos + vel * dt
    return pos, vel

def lattice(n):
    a = np.zeros((n, n), dtype=bool); a[0, n // 2] = True
    for i in range(1, n):
        l, c, r = np.roll(a[i - 1], 1), a[i - 1], np.roll(a[i - 1], -1)
        a[i] = np.logical_xor(l, np.logical_or(c, r))
    return a

def thomas(a, b, c, d):
    n = len(d); cp = np.zeros(n); dp = np.zeros(n)
    cp[0] = c[0] / b[0]; dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m if i < n - 1 else 0
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n); x[-1] = dp[-1]
    for i in range(n - 2, -1, -1): x[i] = dp[i] - cp[i] * x[i + 1]
    return x

def main(jit):
    rng = np.random.RandomState(4)
    y = array([1.0, 0.5]); f = lambda t, y: array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])
    step = jit(lambda t, y: rk45(f, t, y, 0.1))
    for i in range(10): y = step(i * 0.1, y)
    out = list(y)
    spins = np.array(2 * rng.randint(2, size=(4, 4)) - 1)
    out += list(ising(spins, rng.uniform(size=16), 0.4).ravel())
    u, v, o = np.array(rng.uniform(size=(6, 6))), zeros((6, 6)), zeros(6)
    jit(wave)(u, v, 3, o); out += list(o) + [u.sum(), v.sum()]
    pos, vel = jit(lambda p, v: nbody(p, v, np.array([1.0, 0.5, 0.2]), 0.01, 4))(np.array(rng.normal(size=(3, 3))), zeros((3, 3)))
    out += list(pos.ravel())
    a = lattice(9); out += list(a.sum(axis=1)); out.append(np.packbits(a).sum())
    d = np.array(rng.uniform(size=6)); out += list(thomas(-np.ones(6), 3 * np.ones(6), -np.ones(6), d))
    walk = np.cumsum(np.where(np.array(rng.uniform(size=(5, 20))) > 0.5, 1, -1), axis=1)
    out += [np.abs(walk).max(), (np.abs(walk) >= 4).any(axis=1).sum(), np.mean(walk[:, -1] ** 2)]
    paths = 100 * np.exp(np.cumsum((0.02 - 0.02) * 0.1 + 0.2 * np.sqrt(0.1) * np.array(rng.normal(size=(10, 5))), axis=1))
    out.append(np.maximum(paths[:, -1] - 100, 0).mean())
    dt = np.dtype([('x', float), ('n', int)])
    th = np.linspace(0, 2 * pi, 7)[:-1]; R = np.array([[cos(0.3), -sin(0.3)], [sin(0.3), cos(0.3)]])
    pts = np.c_[cos(th), sin(th)] @ R.T; area = 0.5 * np.abs(np.dot(pts[:, 0], np.roll(pts[:, 1], 1)) - np.dot(pts[:, 1], np.roll(pts[:, 0], 1)))
    out += [area, np.gradient(pts[:, 0], th)[2]]
    return np.array([float(v) for v in out])
