"""Counter-based random bits: threefry, xorshift, PCG's hash, floats and normal numbers of bits."""

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np

def rotl(x, d):
    return (x << jnp.uint32(d)) | (x >> jnp.uint32(32 - d))

def threefry2x32(k, x):
    rotations = [np.array([13, 15, 26, 6], dtype=np.uint32), np.array([17, 29, 16, 24], dtype=np.uint32)]
    ks = [k[0], k[1], k[0] ^ k[1] ^ jnp.uint32(0x1BD11BDA)]
    x = [x[0] + ks[0], x[1] + ks[1]]
    for i in range(5):
        for r in rotations[i % 2]:
            x[0] = x[0] + x[1]
            x[1] = rotl(x[1], int(r))
            x[1] = x[0] ^ x[1]
        x = [x[0] + ks[(i + 1) % 3], x[1] + ks[(i + 2) % 3] + jnp.uint32(i + 1)]
    return jnp.stack(x)

def bits_to_uniform(bits):
    float_bits = lax.bitwise_or(lax.shift_right_logical(bits, jnp.uint32(9)), jnp.uint32(0x3F800000))
    return lax.bitcast_convert_type(float_bits, jnp.float32) - 1.0

def xorshift_scan(seed, n):
    def f(s, _):
        s = s ^ (s << 13)
        s = s ^ (s >> 17)
        s = s ^ (s << 5)
        return s, s
    return lax.scan(f, seed, None, length=n)[1]

def pcg_hash(v):
    state = v * jnp.uint32(747796405) + jnp.uint32(2891336453)
    word = ((state >> ((state >> 28) + 4)) ^ state) * jnp.uint32(277803737)
    return (word >> 22) ^ word

def popcount(x):
    return lax.population_count(x)

def main(jit):
    jax.config.update("jax_enable_x64", True)
    key = jnp.array([0x13198a2e, 0x03707344], dtype=jnp.uint32)
    counts = jnp.arange(8, dtype=jnp.uint32).reshape(2, 4)
    bits = jit(threefry2x32)(key, counts)
    u = bits_to_uniform(bits)
    normals = jnp.sqrt(2.0) * lax.erf_inv(2 * jnp.clip(u, 1e-6, 1 - 1e-6) - 1)
    xs = jit(lambda s: xorshift_scan(s, 6))(jnp.uint32(2463534242))
    h = jit(jax.vmap(pcg_hash))(jnp.arange(5, dtype=jnp.uint32))
    gumbel = -jnp.log(-jnp.log(jnp.clip(u, 1e-6, 1 - 1e-6)))
    perm = jnp.argsort(pcg_hash(jnp.arange(6, dtype=jnp.uint32)))
    return jnp.concatenate([bits.ravel().astype(jnp.float64), u.ravel().astype(jnp.float64), normals.ravel().astype(jnp.float64), xs.astype(float), h.astype(float), popcount(h).astype(float), gumbel.ravel(), perm.astype(float)])
