"""Loops and branches as functions: Python's own, which a trace unrolls, and both branches where a condition is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree

from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, maximum, minimum
from jitgrad.ops.comparison import equal, less, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.identity import ANY_EXAMPLE
from jitgrad.ops.turns import FEWEST_TURNS, Turns


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = None) -> Any:
    """``true_fun(*operands)`` if ``pred``, else ``false_fun(*operands)``.

    Of a condition that a trace computes both are computed, and each element of the results is chosen by `where`: they
    must be pytrees of one structure.

    Raises ArgumentError if they are not.
    """
    given = operands if operand is None else (*operands, operand)
    if not _has_no_value(pred):
        return (true_fun if bool(pred) else false_fun)(*given)
    return _chosen("lax.cond", pred, true_fun(*given), false_fun(*given))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``, with an index out of bounds moved to the nearest branch; traced as in `cond`.

    Raises ArgumentError if there is no branch, or if results of a traced index differ in structure.
    """
    if not branches:
        raise ArgumentError("lax.switch: at least one branch is needed, got none")
    last = len(branches) - 1
    if not _has_no_value(index):
        return branches[min(max(int(index), 0), last)](*operands)
    nearest = minimum(maximum(index, 0), last)
    result = branches[0](*operands)
    for k, branch in enumerate(branches[1:], 1):
        result = _chosen("lax.switch", equal(nearest, k), branch(*operands), result)
    return result


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each ``x`` along the first axes of ``xs``: the last carry, and all ``y`` stacked.

    A Python loop; many turns in a compiled function are one loop there, of which ``f`` is traced for one turn, unless
    ``unroll=True``. Turns that decide by values, change tensors or Python objects, or draw random numbers are traced one
    by one.

    Raises:
        ShapeError: the first axes of ``xs`` differ, or there are no turns, so that no ``y`` has a shape.
        ArgumentError: neither ``xs`` nor ``length`` says how many turns there are.
    """
    leaves, treedef = optree.tree_flatten(xs)
    arrays = [asarray(x) for x in leaves]
    lengths = {x.shape[0] if x.ndim else -1 for x in arrays} | ({length} if length is not None else set())
    if not lengths:
        raise ArgumentError("lax.scan: no array in xs, and no length=: the number of turns is unknown")
    if len(lengths) > 1 or -1 in lengths:
        raise ShapeError(f"lax.scan: first axes of one length are needed, got {[x.aval for x in arrays]} and length={length}")
    (turns,) = lengths
    if not turns:
        raise ShapeError(f"lax.scan over {[x.aval for x in arrays]}: without a turn the results of f have no shape")
    fewest = turns + 1 if unroll is True else FEWEST_TURNS

    def turn(carry: Any, slices: list[Any]) -> tuple[Any, Any]:
        return f(carry, optree.tree_unflatten(treedef, slices))

    return Turns("scan", turn, arrays, turns, reverse, fewest=fewest).run(init)


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of each element along the first axes of ``xs``, the results stacked. ``batch_size`` changes nothing.

    Raises ShapeError, ArgumentError: as `scan`.
    """
    return scan(lambda carry, x: (carry, f(x)), None, xs)[1]


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[int, Any], Any], init_val: Any, *, unroll: Any = None) -> Any:
    """``value = body_fun(i, value)`` for ``i`` from ``lower`` to ``upper - 1``, with ``i`` a Python int.

    Many turns in a compiled function are one loop, as in `scan`, with ``i`` a number that is known when it runs; turns that
    need it as an int (``range(i)``, ``layers[i]``) are traced one by one. There is a program for each pair of bounds that
    the function computes. Bounds that differ between the examples of a vmap make it a `while_loop`.
    """
    if _for_any_example(equal(lower, upper)) is not None:
        start = (add(lower, 0), init_val)
        return while_loop(lambda state: less(state[0], upper), lambda state: (add(state[0], 1), body_fun(*state)), start)[1]
    numbers = range(int(lower), int(upper))

    def turn(carry: Any, slices: list[Any]) -> tuple[Any, Any]:
        return body_fun(slices[0], carry), None

    fewest = len(numbers) + 1 if unroll is True else FEWEST_TURNS
    return Turns("fori_loop", turn, (), len(numbers), numbers=numbers, fewest=fewest).run(init_val).carry


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """``value = body_fun(value)`` while ``cond_fun(value)``.

    A compiled function has a program for each number of turns that its calls take; `jitgrad.elementwise` makes one op of
    a function of one element with ``while``. Under `jitgrad.vmap`, where each example has a condition of its own, there are
    turns until no example's condition holds, and an example keeps its value from where its own does not.
    """
    value, goes_on = init_val, cond_fun(init_val)
    while (for_any := _for_any_example(goes_on)) is not None or goes_on:
        if for_any is None:
            value = body_fun(value)
        elif for_any:
            value = _chosen("lax.while_loop", goes_on, body_fun(value), value)
        else:
            break
        goes_on = cond_fun(value)
    return value


def _for_any_example(condition: Any) -> bool | None:
    """Whether ``condition`` holds for any example of a vmap; None if it is the same for all, or there is none."""
    interpreter = current_interpreter.get()
    if not _has_no_value(condition) or interpreter.known_value(condition, "bool()") is not None:
        return None
    joined = interpreter.known_value(apply_op(ANY_EXAMPLE, condition), "bool()")
    return None if joined is None else bool(joined)


def _has_no_value(x: Any) -> bool:
    return isinstance(x, Tensor) and type(x._data) is Value


def _chosen(what: str, pred: Any, one: Any, other: Any) -> Any:
    """The elements of ``one`` where ``pred``, else those of ``other``."""
    leaves, treedef = optree.tree_flatten(one)
    others, structure = optree.tree_flatten(other)
    if treedef != structure:
        given = f"{shown(one)} and {shown(other)}"
        raise ArgumentError(f"{what} of a traced condition: the results must have one structure, got {given}")
    shapes = [(asarray(a).shape, asarray(b).shape) for a, b in zip(leaves, others, strict=True)]
    if wrong := [pair for pair in shapes if pair[0] != pair[1]]:
        given = f"{wrong[0][0]} and {wrong[0][1]}"
        raise ArgumentError(f"{what} of a traced condition: results of equal shapes are needed, got {given}")
    return optree.tree_unflatten(treedef, [where(pred, a, b) for a, b in zip(leaves, others, strict=True)])
