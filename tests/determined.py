"""What of the results of a decomposition mathematics determines: neither the signs of vectors nor their complex phases."""

from __future__ import annotations

from typing import Any

from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import OpDef


def without_phase(vectors: Any) -> Any:
    """Vectors in columns, each of which is one but for a factor of size 1."""
    return vectors * vectors[..., :1, :].conj()


def of_svd(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    """Of vectors that belong to each other only the product has no free factor."""
    k = s.shape[-1]
    return without_phase(u), s, without_phase(vh.mT.conj()), u[..., :1, :k].mT * vh[..., :k, :]


def of_eigenvectors(values: Any, vectors: Any) -> tuple[Any, ...]:
    """Eigenvalues in the order they have."""
    return values, without_phase(vectors)


DETERMINED = {"eigh": of_eigenvectors, "eig": of_eigenvectors, "svd": of_svd}


def determined(op: OpDef, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    """What is determined of ``op(*operands, **attrs)``."""
    results = apply_op(op, *operands, **attrs)
    if op.name in DETERMINED:
        return DETERMINED[op.name](*results)
    return results if isinstance(results, tuple) else (results,)
