"""Operands for an op, drawn from the domains that its entry in the registry names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval, Dtype, Shape, complex_dtype_of
from jitgrad.core.errors import ArgumentError
from jitgrad.core.op import OpDef

_EIGENVALUES = [3.0, 1.5, 0.6]

Draw = Callable[[np.random.Generator, Shape], Array]


def _with_sign(rng: np.random.Generator, x: Array) -> Array:
    signed: Array = x * rng.choice([-1.0, 1.0], x.shape)
    return signed


def _orthogonal(rng: np.random.Generator, n: int) -> Array:
    q: Array = np.linalg.qr(rng.normal(0.0, 1.0, (n, n)))[0]
    return q


def _with_singular_values(rng: np.random.Generator, values: list[float]) -> Array:
    product: Array = _orthogonal(rng, len(values)) * np.array(values) @ _orthogonal(rng, len(values)).T
    return product


def _with_eigenvalues(rng: np.random.Generator, values: list[float], *, hermitian: bool = False) -> Array:
    basis = _orthogonal(rng, len(values))
    if hermitian:
        basis = np.exp(1j * rng.uniform(0.0, 6.0, (len(values), 1))) * basis @ _orthogonal(rng, len(values))
    product: Array = basis * np.array(values) @ basis.conj().T
    return product


# Each keeps a distance from the kinks, poles and jumps at its edges, so that finite differences with steps up to 2e-3
# do not reach them.
DOMAINS: dict[str, Draw] = {
    "real": lambda rng, shape: rng.normal(0.0, 1.2, shape),
    "complex": lambda rng, shape: rng.normal(0.0, 1.2, shape) + 1j * rng.normal(0.0, 1.2, shape),
    "positive": lambda rng, shape: rng.uniform(0.3, 3.0, shape),
    "nonzero": lambda rng, shape: _with_sign(rng, rng.uniform(0.4, 2.5, shape)),
    "within_one": lambda rng, shape: rng.uniform(-0.9, 0.9, shape),
    "probability": lambda rng, shape: rng.uniform(0.05, 0.95, shape),
    "above_one": lambda rng, shape: rng.uniform(1.2, 4.0, shape),
    "lower_bound": lambda rng, shape: rng.uniform(-1.5, -0.5, shape),
    "upper_bound": lambda rng, shape: rng.uniform(0.5, 1.5, shape),
    "not_integral": lambda rng, shape: rng.integers(-6, 6, shape) + rng.uniform(0.2, 0.8, shape),
    "integral_divisor": lambda rng, shape: _with_sign(rng, rng.integers(2, 4, shape).astype(np.float64)),
    "bool": lambda rng, shape: rng.integers(0, 2, shape).astype(np.bool_),
    "int": lambda rng, shape: rng.integers(-8, 9, shape),
    "count": lambda rng, shape: rng.integers(0, 6, shape),
    "scalar": lambda rng, _shape: rng.normal(0.0, 1.0, ()),
    "invertible": lambda rng, _shape: _with_singular_values(rng, [3.0, 1.5, 0.6]),
    "positive_definite": lambda rng, _shape: _with_eigenvalues(rng, _EIGENVALUES),
    "matrix": lambda rng, _shape: rng.normal(0.0, 1.0, (3, 3)),
}


def is_complex_op(op: OpDef) -> bool:
    """Whether ``op``, on the samples of its entry, takes or makes complex numbers."""
    if "complex" in op.domain or not set(op.domain) <= set(DOMAINS):
        return "complex" in op.domain
    samples = sample_operands(op, np.random.default_rng(0))
    results = op.abstract([Aval(x.shape, x.dtype) for x in samples], op.sample_attrs)
    return any(a.dtype.kind == "c" for a in (results if isinstance(results, tuple) else (results,)))


def sample_operands(op: OpDef, rng: np.random.Generator, shape: Shape = (3, 4), dtype: Any = np.float64) -> list[Array]:
    """One array of ``shape`` for each operand of ``op``, from the domains of its entry.

    ``dtype`` is the dtype of the real-valued domains; an integer dtype rounds them away from 0, an unsigned one
    also drops the sign; of a complex one both parts are drawn. Bools stay bools, and integers stay integers where
    ``dtype`` is floating. The domain of complex numbers has the complex dtype of a floating ``dtype``.

    Raises:
        ArgumentError: the entry names no domain, or one that is not in ``DOMAINS``.
    """
    if not op.domain:
        raise ArgumentError(f"sample_operands: the entry of op {op} has no domain")
    unknown = sorted(set(op.domain) - set(DOMAINS))
    if unknown:
        raise ArgumentError(f"sample_operands: the domain {unknown} of op {op} is not one of {sorted(DOMAINS)}")
    return [_converted(_drawn(name, rng, shape, np.dtype(dtype)), np.dtype(dtype)) for name in op.domain]


def _drawn(name: str, rng: np.random.Generator, shape: Shape, dtype: Dtype) -> Array:
    if name == "positive_definite" and dtype.kind == "c":
        return _with_eigenvalues(rng, _EIGENVALUES, hermitian=True)
    x = np.asarray(DOMAINS[name](rng, shape))
    return x + 1j * np.asarray(DOMAINS[name](rng, shape)) if dtype.kind == "c" and x.dtype.kind == "f" else x


def _converted(x: Array, dtype: Dtype) -> Array:
    if x.dtype == np.bool_ or (x.dtype.kind == "i" and dtype.kind in "fc"):
        return x
    if x.dtype.kind == "c" and dtype.kind == "f":
        return x.astype(complex_dtype_of(dtype))
    if dtype.kind in "fcb" or x.dtype.kind == "c":
        return x.astype(dtype) if dtype.kind in "fcb" else x
    rounded = np.sign(x) * np.ceil(np.abs(x))
    return (np.abs(rounded) if dtype.kind == "u" else rounded).astype(dtype)
