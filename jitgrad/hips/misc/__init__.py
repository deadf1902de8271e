"""autograd.misc: vectors of parameters, and optimisers that are functions; imports autograd, ops, core."""

from __future__ import annotations

from jitgrad.hips.misc.flatten import flatten as flatten
