"""Names of HIPS autograd, found in `jitgrad.autograd`: transforms, extend, misc, builtins; imports batching,
autograd, testing, ops, core."""

from __future__ import annotations

from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias

# `jitgrad.autograd.numpy` and `jitgrad.autograd.scipy`, which `jitgrad.autograd` looks for here
_ModuleAlias("jitgrad.hips", "jitgrad", ["transforms", "extend", "misc", "builtins", "test_util", "tracer"]).install()
