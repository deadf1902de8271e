"""einsum: operands contracted in pairs, each pair one batched matmul."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from string import ascii_letters
from typing import Any

from jitgrad.core.aval import promote
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray
from jitgrad.ops.diagonals import diagonal
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import permute_dims, reshape, squeeze
from jitgrad.ops.reduce import sum as sum_

Term = tuple[Tensor, str]  # an operand and one label per axis


def einsum(subscripts: Any, *operands: Any) -> Tensor:
    """Einstein summation as ``np.einsum``: ``einsum("bij,bjk->bik", x, y)``; ``...`` and repeated labels allowed.

    The form ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` works as well. Pairs are contracted in the order that keeps
    intermediate results small (the greedy rule of D. G. A. Smith and J. Gray, "opt_einsum", JOSS 2018).

    Raises:
        ArgumentError: if the subscripts are malformed.
        ShapeError: if an operand does not fit its subscripts, or sizes of one label differ.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    elif (
        len(operands) == 1
        and isinstance(operands[0], (list, tuple))
        and any(isinstance(x, Tensor) for x in operands[0])
    ):
        operands = tuple(operands[0])  # einsum("ij,jk->ik", [x, y]), as in torch
    tensors = [asarray(x) for x in operands]
    # the result of one operand may be a view
    return (_contracted if len(tensors) == 1 else _composed)(subscripts, *tensors)


def _contracted(subscripts: str, *tensors: Tensor) -> Tensor:
    """:func:`einsum` of tensors, with subscripts as a text."""
    inputs, output = _parse(subscripts, tensors)
    dtype = promote(*(x.aval for x in tensors))
    sizes = _sizes(inputs, tensors)
    _check_output(subscripts, output, sizes)
    terms = [_without_repeats(_without_ones((x, labels), sizes)) for x, labels in zip(tensors, inputs, strict=True)]
    terms = [_summed(t, output + "".join(o[1] for o in terms if o is not t)) for t in terms]
    while len(terms) > 1:
        i, j = _cheapest_pair(terms, output, sizes)
        others = [t for k, t in enumerate(terms) if k not in (i, j)]
        terms = [*others, _contract(terms[i], terms[j], output + "".join(t[1] for t in others))]
    x, labels = _summed(terms[0], output)
    result = permute_dims(x, tuple(labels.index(label) for label in output))
    return result if result.dtype == dtype else astype(result, dtype)


_composed = composed(_contracted)


def _interleaved(parts: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """``x, [0, 1], y, [1, 2], [0, 2]`` as subscripts and operands."""
    has_output = len(parts) % 2 == 1
    lists = [*parts[1::2], *([parts[-1]] if has_output else [])]
    operands = tuple(parts[: len(parts) - has_output : 2])
    text = ["".join("..." if k is Ellipsis else ascii_letters[k] for k in labels) for labels in lists]
    return ",".join(text[: len(operands)]) + (f"->{text[-1]}" if has_output else ""), operands


def _parse(subscripts: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """Labels of every operand and of the result, with labels in place of every ellipsis."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors):
        raise ArgumentError(f"einsum {subscripts!r} names {len(inputs)} operands, {len(tensors)} were given")
    for part in (*inputs, right):
        bare = part.replace("...", "", 1)
        if bare and not (bare.isascii() and bare.isalpha()):
            raise ArgumentError(f"einsum {subscripts!r}: {part!r} is not made of letters and at most one ellipsis")
    depths = [x.ndim - len(part.replace("...", "")) for part, x in zip(inputs, tensors, strict=True)]
    for part, depth, x in zip(inputs, depths, tensors, strict=True):
        if depth < 0 or (depth and "..." not in part):
            raise ShapeError(f"einsum {subscripts!r}: operand {x.aval} does not fit the subscripts {part!r}")
    most = max((d for d, part in zip(depths, inputs, strict=True) if "..." in part), default=0)
    # private-use characters cannot collide with the letters of the subscripts
    dots = "".join(chr(0xE000 + k) for k in range(most))
    expanded = [p.replace("...", dots[most - d :]) for p, d in zip(inputs, depths, strict=True)]
    if arrow:
        return expanded, right.replace("...", dots)
    every = "".join(expanded)
    return expanded, dots + "".join(sorted(c for c in set(every) - set(dots) if every.count(c) == 1))


def _sizes(inputs: Iterable[str], tensors: Iterable[Tensor]) -> dict[str, int]:
    """The size of each label; a size 1 stretches to the others', as in NumPy."""
    sizes: dict[str, int] = {}
    for labels, x in zip(inputs, tensors, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            size = sizes.setdefault(label, n)
            if n != size and 1 not in (n, size):
                raise ShapeError(f"einsum: label {label!r} has size {size} and size {n} (in {x.aval})")
            if size == 1:
                sizes[label] = n
    return sizes


def _check_output(subscripts: str, output: str, sizes: dict[str, int]) -> None:
    for label in output:
        if label not in sizes or output.count(label) > 1:
            raise ArgumentError(f"einsum {subscripts!r}: result label {label!r} is repeated or is in no operand")


def _without_ones(term: Term, sizes: dict[str, int]) -> Term:
    """Drop axes of size 1 whose label is larger elsewhere: they only broadcast."""
    x, labels = term
    ones = tuple(k for k, label in enumerate(labels) if x.shape[k] == 1 and sizes[label] != 1)
    if not ones:
        return term
    return squeeze(x, ones), "".join(label for k, label in enumerate(labels) if k not in ones)


def _without_repeats(term: Term) -> Term:
    """Take diagonals until every label occurs once."""
    x, labels = term
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(x, 0, i, j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + label
    return x, labels


def _summed(term: Term, keep: str) -> Term:
    """Sum over the axes whose labels are not in ``keep``."""
    x, labels = term
    axes = tuple(k for k, label in enumerate(labels) if label not in keep)
    if not axes:
        return term
    return sum_(x, axis=axes), "".join(label for label in labels if label in keep)


def _cheapest_pair(terms: Sequence[Term], output: str, sizes: dict[str, int]) -> tuple[int, int]:
    """The pair whose contraction grows the least over its operands; the earliest of equals."""
    best: tuple[int, int, int] | None = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            keep = output + "".join(t[1] for k, t in enumerate(terms) if k not in (i, j))
            a, b = terms[i][1], terms[j][1]
            result = prod(sizes[c] for c in set(a + b) if c in keep)
            growth = result - prod(sizes[c] for c in a) - prod(sizes[c] for c in b)
            if best is None or growth < best[0]:
                best = growth, i, j
    assert best is not None
    return best[1], best[2]


def _contract(left: Term, right: Term, keep: str) -> Term:
    """One batched matmul: shared kept labels are the batch, shared dropped ones the inner axis."""
    (x, a), (y, b) = left, right
    batch = [c for c in a if c in b and c in keep]
    inner = [c for c in a if c in b and c not in keep]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    sizes = dict(zip(a + b, (*x.shape, *y.shape), strict=True))

    def size(labels: list[str]) -> int:
        return prod(sizes[c] for c in labels)

    lead = [sizes[c] for c in batch]
    left_axes = tuple(a.index(c) for c in batch + rows + inner)
    right_axes = tuple(b.index(c) for c in batch + inner + columns)
    x3 = reshape(permute_dims(x, left_axes), (*lead, size(rows), size(inner)))
    y3 = reshape(permute_dims(y, right_axes), (*lead, size(inner), size(columns)))
    labels = "".join(batch + rows + columns)
    return reshape(matmul(x3, y3), tuple(sizes[c] for c in labels)), labels
