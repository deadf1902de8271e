"""Audio: STFT and its inverse, a biquad filter, Levinson's recursion on elements that change."""

import numpy as np


def stft(x, win, hop):
    n = len(win)
    frames = 1 + (len(x) - n) // hop
    idx = np.arange(n)[None, :] + hop * np.arange(frames)[:, None]
    return np.fft.rfft(x[idx] * win, axis=-1)


def istft(S, win, hop):
    fr = np.fft.irfft(S, axis=-1) * win
    out = np.zeros(hop * (len(fr) - 1) + len(win))
    norm = np.zeros_like(out)
    for i, f in enumerate(fr):
        out[i * hop : i * hop + len(win)] += f
        norm[i * hop : i * hop + len(win)] += win**2
    return out / np.where(norm > 1e-8, norm, 1)


def biquad(x, b, a):
    y = np.zeros_like(x)
    z1 = z2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + z1
        z1 = b[1] * x[n] - a[1] * y[n] + z2
        z2 = b[2] * x[n] - a[2] * y[n]
    return y


def feats(S, mel):
    P = np.abs(S) ** 2
    lm = 10 * np.log10(np.maximum(P @ mel.T, 1e-10))
    lm -= lm.max()
    n = lm.shape[-1]
    k = np.arange(n)
    dct = np.cos(np.pi / n * (k[None, :] + 0.5) * k[:, None]) * np.sqrt(2 / n)
    cent = (P * np.arange(P.shape[1])).sum(1) / P.sum(1)
    return lm @ dct.T, cent, np.unwrap(np.angle(S), axis=0)


def autoc(x):
    x = x - x.mean()
    c = np.correlate(x, x, mode="full")[len(x) - 1 :]
    return c / c[0], np.convolve(x, np.ones(5) / 5, "same"), np.convolve(x, [1, -1, 0.5], mode="valid")


def levinson(r, order):
    a = np.zeros(order + 1)
    a[0] = 1
    e = r[0]
    for i in range(1, order + 1):
        k = -(r[i] + np.dot(a[1:i], r[i - 1 : 0 : -1])) / e
        a[1:i] = a[1:i] + k * a[i - 1 : 0 : -1]
        a[i] = k
        e *= 1 - k**2
    return a, e


def run(jit, seed, n):
    r = np.random.default_rng(seed)
    x = np.array(r.normal(size=8 * n))
    win = np.hanning(17)[:-1]
    S = jit(stft)(x, win, 4)
    b, a = np.array([0.2, 0.3, 0.2]), np.array([1.0, -0.5, 0.3])
    ac, ma, d = jit(autoc)(x)
    return (
        S,
        jit(istft)(S, win, 4),
        jit(biquad)(x[:12], b, a),
        jit(feats)(S, np.abs(np.array(r.normal(size=(5, 9))))),
        ac,
        ma,
        d,
        jit(levinson)(ac, 4),
        np.sinc(x[:4]),
        np.blackman(6),
    )


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (tuple, list)) else [np.ravel(x)]


def main(jit):
    return np.concatenate([np.nan_to_num(x.real.astype(float)) for x in flat(run(jit, 0, 6))])
