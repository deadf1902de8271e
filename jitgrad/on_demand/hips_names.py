"""HIPS autograd's names in `jitgrad.autograd`, whose own are torch's: imported when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from jitgrad import autograd
from jitgrad.core.missing_names import raising
from jitgrad.core.module_alias import ModuleAlias
from jitgrad.on_demand.fresh_import import imported

HIPS_MODULES: Mapping[str, str] = {
    "builtins": "jitgrad.hips.builtins", "extend": "jitgrad.hips.extend", "misc": "jitgrad.hips.misc",
    "numpy": "jitgrad.numpy", "scipy": "jitgrad.scipy", "test_util": "jitgrad.hips.test_util",
    "tracer": "jitgrad.hips.tracer",
}  # fmt: skip
_TRANSFORMS = "jitgrad.hips.transforms"
HIPS_TRANSFORMS: frozenset[str] = frozenset(
    "deriv elementwise_grad grad_and_aux grad_named hessian hessian_tensor_product hessian_vector_product jacobian make_ggnvp "
    "make_hvp make_jvp make_vjp tensor_jacobian_product vector_jacobian_product".split()
)
_missing = raising("jitgrad.autograd", {**vars(autograd), **HIPS_MODULES, **dict.fromkeys(HIPS_TRANSFORMS)})


def _hips_attribute(name: str) -> Any:
    if name in HIPS_MODULES:
        found = imported(lambda: import_module(HIPS_MODULES[name]))
    elif name in HIPS_TRANSFORMS:
        found = getattr(imported(lambda: import_module(_TRANSFORMS)), name)
    else:
        _missing(name)
    setattr(autograd, name, found)
    return found


vars(autograd)["__getattr__"] = _hips_attribute
ModuleAlias("jitgrad.autograd", "jitgrad.hips").install()
