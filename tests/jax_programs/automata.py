"""Cellular automata and fractals: wrapped convolution, a sandpile by .at, while_loop under vmap, holomorphic grad."""

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np

def life(board, n):
    kernel = jnp.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=jnp.float32)
    def step(b, _):
        padded = jnp.pad(b, 1, mode="wrap")
        nb = lax.conv(padded[None, None].astype(jnp.float32), kernel[None, None], (1, 1), "VALID")[0, 0]
        nb2 = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        new = ((nb == 3) | ((b == 1) & (nb2 == 2))).astype(b.dtype)
        return new, new.sum()
    return lax.scan(step, board, None, length=n)

def mandelbrot(c, n=20):
    def body(i, carry):
        z, count = carry
        z = z * z + c
        return z, count + (jnp.abs(z) < 2)
    return lax.fori_loop(0, n, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]

def collatz(n):
    return lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[1]

def sandpile(g, steps):
    def f(g, _):
        t = g >= 4
        spill = t.astype(g.dtype)
        g = g - 4 * spill
        g = g.at[1:].add(spill[:-1]).at[:-1].add(spill[1:]).at[:, 1:].add(spill[:, :-1]).at[:, :-1].add(spill[:, 1:])
        return g, None
    return lax.scan(f, g, None, length=steps)[0]

def dft(x):
    n = x.shape[-1]
    k = jnp.arange(n)
    W = jnp.exp(-2j * jnp.pi * jnp.outer(k, k) / n)
    return W @ x

def main(jit):
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(9)
    board = jnp.array(rng.integers(0, 2, (8, 8)))
    b, pops = jit(lambda b: life(b, 5))(board)
    re, im = jnp.meshgrid(jnp.linspace(-2, 1, 8), jnp.linspace(-1, 1, 6))
    counts = jit(mandelbrot)(re + 1j * im)
    col = jax.vmap(collatz)(jnp.array([7, 12, 27]))
    pile = jit(lambda g: sandpile(g, 9))(jnp.full((5, 5), 5))
    x = jnp.array(rng.normal(size=8))
    err = jnp.abs(dft(x) - jnp.fft.fft(x)).max()
    h = jax.grad(lambda z: z ** 3 + jnp.exp(z), holomorphic=True)(jnp.complex128(0.3 + 0.4j))
    return jnp.concatenate([pops.astype(float), counts.ravel().astype(float), col.astype(float), pile.ravel().astype(float), jnp.array([err > 1e-9, h.real, h.imag])])
