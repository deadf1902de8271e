"""Programs as they are written for autograd and JAX: real parameters, complex numbers and transforms in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import jitgrad.numpy as np

RNG = numpy.random.default_rng(3)
WAVES = numpy.fft.fftfreq(32, 1 / 32)
HALF = numpy.fft.rfftfreq(32, 1 / 32)
SIGNAL = RNG.normal(0, 1, 32)
FILTER = RNG.normal(0, 1, 17)
TARGET = RNG.normal(0, 1, 32)
STATE = RNG.normal(0, 1, 32) + 1j * RNG.normal(0, 1, 32)
POTENTIAL = numpy.linspace(-1, 1, 32) ** 2
IMAGE = RNG.normal(0, 1, (8, 12))
MATRIX = RNG.normal(0, 1, (4, 4)) + 1j * RNG.normal(0, 1, (4, 4))
ROTATION = RNG.normal(0, 1, 6)


def spectral_derivative(u: Any) -> Any:
    u_hat = np.fft.fft(u)
    du = np.fft.ifft(1j * WAVES * u_hat).real
    return np.sum((du - TARGET) ** 2)


def burgers(u: Any) -> Any:
    """Three steps of Burgers' equation with an integrating factor for the viscosity."""
    damping = np.exp(-0.01 * HALF**2 * 0.005)
    u_hat = np.fft.rfft(u)
    for _ in range(3):
        now = np.fft.irfft(u_hat)
        slope = np.fft.irfft(1j * HALF * u_hat)
        u_hat = damping * (u_hat - 0.005 * np.fft.rfft(now * slope))
    return np.mean((np.fft.irfft(u_hat) - TARGET) ** 2)


def spectral_loss(x: Any) -> Any:
    return np.mean((np.abs(np.fft.rfft(x)) ** 2 - np.abs(np.fft.rfft(TARGET)) ** 2) ** 2) * 1e-4


def log_spectrum(x: Any) -> Any:
    return np.sum(np.log(np.abs(np.fft.rfft(x)) + 1e-3))


def convolution(x: Any, kernel: Any) -> Any:
    n = x.shape[0] + kernel.shape[0] - 1
    product = np.fft.rfft(x, n) * np.fft.rfft(kernel, n)
    return np.sum(np.tanh(np.fft.irfft(product, n)) ** 2)


def low_pass(image: Any) -> Any:
    k, m = np.fft.fftfreq(8)[:, None], np.fft.fftfreq(12)[None, :]
    damping = 1.0 / (1.0 + 30.0 * (k**2 + m**2))
    smooth = np.real(np.fft.ifft2(damping * np.fft.fft2(image)))
    return np.sum(smooth**2) + np.sum((smooth - image) ** 2)


def evolution(potential: Any) -> Any:
    """The split-operator method: |psi|^2 after four steps in a potential."""
    dt = 0.02
    psi = STATE / np.sqrt(np.sum(np.abs(STATE) ** 2))
    kinetic = np.exp(-0.5j * WAVES**2 * dt * 0.05)
    for _ in range(4):
        psi = psi * np.exp(-1j * potential * dt)
        psi = np.fft.ifft(kinetic * np.fft.fft(psi))
    density = np.abs(psi) ** 2
    return np.sum(density * POTENTIAL) + np.real(np.vdot(STATE, psi))


def unitary(angles: Any) -> Any:
    """A product of rotations of two of four levels, and the fidelity of the state."""
    state = np.array([1.0, 0.0, 0.0, 0.0], dtype=np.complex128)
    for k in range(3):
        c, s = np.cos(angles[k]), np.sin(angles[k])
        phase = np.exp(1j * angles[k + 3])
        block = np.stack([np.stack([c + 0j, -s * np.conj(phase)]), np.stack([s * phase, c + 0j])])
        state = np.concatenate([np.matmul(block, state[:2]), state[2:]])
        state = np.roll(np.matmul(MATRIX, state), 1)
        state = state / np.linalg.norm(state)
    return np.abs(np.sum(state * numpy.array([1, 1j, -1, 0.5j]))) ** 2


def resolvent(x: Any) -> Any:
    """The size of a transfer function ``(i w - A)^-1 b``."""
    system = np.reshape(x[:16], (4, 4)) - 3.0 * np.eye(4)
    total = 0.0
    for w in (0.3, 1.7):
        answer = np.linalg.solve(1j * w * np.eye(4) - system, np.ones(4) + 0j)
        total = total + np.sum(np.abs(answer) ** 2)
    return total


def polar(x: Any) -> Any:
    z = x[:16] * np.exp(1j * x[16:])
    w = (z**2 + 1) / (z - 2j) + np.sqrt(z) * np.log(z + 3) - np.conj(z) ** 3
    return np.sum(np.angle(w + 5.0) * np.real(w)) + np.sum(np.tanh(np.imag(w) * 0.1))


def selected(x: Any) -> Any:
    spectrum = np.fft.fft(x)
    kept = np.where(np.abs(spectrum) > 4.0, spectrum, 0.0)
    return np.sum(np.fft.ifft(kept).real ** 3)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[numpy.ndarray[Any, Any], ...]]] = {
    "spectral_derivative": (spectral_derivative, (SIGNAL,)),
    "burgers": (burgers, (SIGNAL,)),
    "spectral_loss": (spectral_loss, (SIGNAL,)),
    "log_spectrum": (log_spectrum, (SIGNAL,)),
    "convolution": (convolution, (SIGNAL, FILTER)),
    "low_pass": (low_pass, (IMAGE,)),
    "evolution": (evolution, (POTENTIAL,)),
    "unitary": (unitary, (ROTATION,)),
    "resolvent": (resolvent, (SIGNAL,)),
    "polar": (polar, (SIGNAL,)),
    "selected": (selected, (SIGNAL,)),
}
