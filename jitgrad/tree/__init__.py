"""jax.tree: the functions of `jitgrad.tree_util` under their short names; imports tree_util, core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.core.missing_names import Lookup, raising
from jitgrad.tree_util import tree_all as all
from jitgrad.tree_util import tree_flatten as flatten
from jitgrad.tree_util import tree_flatten_with_path as flatten_with_path
from jitgrad.tree_util import tree_leaves as leaves
from jitgrad.tree_util import tree_leaves_with_path as leaves_with_path
from jitgrad.tree_util import tree_map as map
from jitgrad.tree_util import tree_map_with_path as map_with_path
from jitgrad.tree_util import tree_reduce as reduce
from jitgrad.tree_util import tree_structure as structure
from jitgrad.tree_util import tree_transpose as transpose
from jitgrad.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path", "reduce", "structure",
    "transpose", "unflatten",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.tree", globals())
