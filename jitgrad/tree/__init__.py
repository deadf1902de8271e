"""jax.tree: the functions of `jitgrad.tree_util` under their short names; imports tree_util, core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.core.missing_names import Lookup, raising
from jitgrad.tree_util import tree_all as all
from jitgrad.tree_util import tree_flatten as flatten
from jitgrad.tree_util import tree_leaves as leaves
from jitgrad.tree_util import tree_map as map
from jitgrad.tree_util import tree_reduce as reduce
from jitgrad.tree_util import tree_structure as structure
from jitgrad.tree_util import tree_unflatten as unflatten

__all__ = ["all", "flatten", "leaves", "map", "reduce", "structure", "unflatten"]

if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.tree", globals())
