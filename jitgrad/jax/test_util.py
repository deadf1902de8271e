"""jax.test_util: gradients beside finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optree

from jitgrad.autograd.functional import jvp
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.testing import gradients

_MODES = frozenset(["fwd", "rev"])


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] | str = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Raise GradcheckError unless the derivatives of ``f`` at ``args``, up to ``order``, are those of finite differences.

    ``f`` takes and returns pytrees of float64. Of ``modes``, "rev" checks gradients and "fwd" that `jax.jvp` runs.
    """
    wanted = {modes} if isinstance(modes, str) else {*modes}
    if not wanted <= _MODES:
        raise ArgumentError(f"check_grads: modes are 'fwd' and 'rev', got {shown(modes)}")
    leaves, treedef = optree.tree_flatten(tuple(args))

    def of_leaves(*xs: Any) -> tuple[Any, ...]:
        return tuple(optree.tree_leaves(f(*optree.tree_unflatten(treedef, xs))))

    options: dict[str, Any] = {"atol": atol, "rtol": rtol, "step": eps}
    tolerances = {name: value for name, value in options.items() if value is not None}
    if "rev" in wanted:
        gradients.check_grads(of_leaves, leaves, order, **tolerances)
    if "fwd" in wanted:
        jvp(of_leaves, tuple(leaves), tuple(leaves))
