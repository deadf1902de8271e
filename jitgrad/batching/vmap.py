"""vmap: a function of one example, applied to arrays of examples at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
import optree

from jitgrad.autograd.modes import no_grad
from jitgrad.batching.array_run import ArrayRun, ExampleContents
from jitgrad.batching.axes import axes_of_leaves
from jitgrad.batching.trace import ExampleTrace
from jitgrad.core.aval import normalize_axis
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, AxisError, ShapeError, require_function, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray
from jitgrad.ops.identity import ALIAS
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import broadcast_to, expand_dims, moveaxis

_RANDOMNESS = ("error", "different", "same")


@takes_dim(in_dims="in_axes", out_dims="out_axes")
def vmap(
    f: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    *,
    randomness: str = "error", chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that applies ``f``, written for one example, to all examples along an axis of its arguments.

    ``f`` runs once, on tensors without that axis, and each of its ops is applied to the whole arrays. Transforms nest in
    any order: ``vmap(grad(f))`` gives the gradient of every example, ``jit(vmap(f))`` compiles what ``vmap(f)`` does.

    Args:
        in_axes: the axis of the examples in the positional arguments: an int for all leaves, None for what is the same
            for all examples, or a tuple with such an entry, or a tree of them, for each argument.
        out_axes: where the axis of the examples is in the results, in the same form; None for a result that is the
            same for all examples.
        axis_size: the number of examples; needed only where no argument has their axis. chunk_size changes nothing.
        randomness: whether random numbers that ``f`` draws are "different" in each example or the "same" in all; by
            default drawing is an error.

    Keyword arguments of the new function have the examples along axis 0. Tensors that ``f`` reads from outside are
    the same for all examples. ``in_dims`` and ``out_dims`` are torch's names.

    A call raises:
        ArgumentError, ShapeError: arguments, results and axes do not fit together.
        TracedValueError: Python asks for a value that differs between the examples.
        InPlaceError: ``f`` changes an argument in place, or by such a value a tensor from outside.
        RandomnessError: ``f`` draws random numbers without ``randomness``.
    """
    _check_options(f, randomness)
    name = getattr(f, "__name__", type(f).__name__)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef, axes = _flattened(name, in_axes, args, kwargs)
        size = _number_of_examples(name, leaves, axes, axis_size)
        return _run(f, ExampleTrace(name, size, randomness, current_interpreter.get()), leaves, treedef, axes, out_axes)

    return wraps(f)(mapped) if hasattr(f, "__name__") else mapped  # a module or a partial object has none


def _check_options(f: Any, randomness: str) -> None:
    require_function("vmap", f)
    if randomness not in _RANDOMNESS:
        raise ArgumentError(f"vmap: randomness is one of {', '.join(_RANDOMNESS)}; got {shown(randomness)}")


def _flattened(
    name: str, in_axes: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], Any, list[int | None]]:
    """The leaves of the arguments, their structure and, for each leaf, its axis of examples, counted from 0."""
    if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
        raise ArgumentError(f"vmap of {name!r}: in_axes={shown(in_axes)} for {len(args)} positional arguments")
    listed = in_axes if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
    names = [*(f"argument {k}" for k in range(len(args))), *map(repr, sorted(kwargs))]
    trees = [*args, *(kwargs[k] for k in sorted(kwargs))]
    leaves: list[Any] = []
    axes: list[int | None] = []
    for place, tree, of_tree in zip(names, trees, [*listed, *[0] * len(kwargs)], strict=True):
        these = optree.tree_leaves(tree)
        for x, axis in zip(these, axes_of_leaves(f"vmap of {name!r} (in_axes)", of_tree, tree, place), strict=True):
            leaves.append(x if axis is None else _array(name, place, x, axis))
            axes.append(None if axis is None else _checked_axis(name, place, leaves[-1], axis))
    return leaves, optree.tree_structure((args, kwargs)), axes


def _array(name: str, place: str, x: Any, axis: int) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, np.ndarray):
        raise ArgumentError(
            f"vmap of {name!r} maps {place} over axis {axis}, but it holds {shown(x)}, which has no axes: give it None in "
            "in_axes, or bind it with functools.partial or a lambda"
        )
    return apply_op(ALIAS, x)  # type: ignore[no-any-return]


def _checked_axis(name: str, place: str, x: Tensor, axis: int) -> int:
    if not x.ndim:
        raise AxisError(f"vmap of {name!r} maps {place} over axis {axis}, but it is a number {x.aval}: give it None in in_axes")
    return normalize_axis(f"vmap of {name!r}, {place}", axis, x.ndim)


def _number_of_examples(name: str, leaves: Sequence[Any], axes: Sequence[int | None], axis_size: int | None) -> int:
    sizes: dict[int, Any] = {x.shape[axis]: x.aval for x, axis in zip(leaves, axes, strict=True) if axis is not None}
    if axis_size is not None:
        sizes.setdefault(axis_size, None)
    if not sizes:
        raise ArgumentError(f"vmap of {name!r}: no argument has an axis of examples: give in_axes, or axis_size")
    if len(sizes) > 1:
        listed = ", ".join(f"{n} in {'axis_size' if aval is None else aval}" for n, aval in sizes.items())
        raise ShapeError(f"vmap of {name!r}: the numbers of examples differ: {listed}")
    (size,) = sizes
    return size


def _run(
    f: Callable[..., Any],
    trace: ExampleTrace,
    leaves: Sequence[Any],
    treedef: Any,
    axes: Sequence[int | None],
    out_axes: Any,
) -> Any:
    """``f`` on one example, and what it did on all of them."""
    wholes = [x if axis is None or axis == 0 else moveaxis(x, axis, 0) for x, axis in zip(leaves, axes, strict=True)]
    given = [
        x if axis is None else trace.example_of(k, x) for k, (x, axis) in enumerate(zip(wholes, axes, strict=True))
    ]
    args, kwargs = optree.tree_unflatten(treedef, given)
    with trace.running():
        returned = f(*args, **kwargs)
        results, out_tree = optree.tree_flatten(returned)
        atoms = [trace.result(x) for x in results]
    out = axes_of_leaves(f"vmap of {trace.name!r} (out_axes)", out_axes, returned, "the result")
    changes = trace.changes()
    contents = ArrayRun(trace).run([*atoms, *(value for _, value in changes)])
    placed = [_placed(trace, c, axis) for c, axis in zip(contents, out, strict=False)]
    _write_changes(trace, changes, contents[len(atoms) :])
    return optree.tree_unflatten(out_tree, placed)


def _placed(trace: ExampleTrace, contents: ExampleContents, axis: int | None) -> Tensor:
    """A result with the examples along ``axis``."""
    whole, mapped = contents
    out = asarray(whole)
    if axis is None:
        if mapped:
            raise ArgumentError(
                f"vmap of {trace.name!r}: out_axes has None for a result {out.aval} that differs between the examples; give it "
                "an axis"
            )
        return out
    ndim = out.ndim if mapped else out.ndim + 1
    place = normalize_axis(f"vmap of {trace.name!r} (out_axes)", axis, ndim)
    if not mapped:
        shape = (*out.shape[:place], trace.size, *out.shape[place:])
        return broadcast_to(expand_dims(out, place), shape)
    return out if place == 0 else moveaxis(out, 0, place)


def _write_changes(trace: ExampleTrace, changes: Sequence[tuple[Tensor, Any]], contents: Sequence[ExampleContents]) -> None:
    for (tensor, _), (_, mapped) in zip(changes, contents, strict=True):
        if mapped:
            raise trace.refuse_mapped(tensor)
    with no_grad():
        for (tensor, _), (new, _) in zip(changes, contents, strict=True):
            current_interpreter.get().write(tensor, asarray(new))
