"""torch's names with torch's meanings: ``import jitgrad.torch as torch`` is all that changes; imports everything below it.

Names are those of `jitgrad`, the same functions, but for the few to which NumPy and torch give different meanings. From
this import on the methods of tensors have torch's meaning as well, in the whole process: ``x.max(1)`` is a pair.
"""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import Any

import numpy as _np

import jitgrad as _jitgrad
from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias
from jitgrad.torch import random as random
from jitgrad.torch.compiling import compile as compile
from jitgrad.torch.compiling import install_scripting as _install_scripting
from jitgrad.torch.derivatives import install_derivatives as _install_derivatives
from jitgrad.torch.keywords import install_keywords as _install_keywords
from jitgrad.torch.keywords import takes_torch_names as _with_names
from jitgrad.torch.meanings import bfloat16 as bfloat16
from jitgrad.torch.meanings import can_cast as can_cast
from jitgrad.torch.meanings import corrcoef as corrcoef
from jitgrad.torch.meanings import cov as cov
from jitgrad.torch.meanings import diag as diag
from jitgrad.torch.meanings import equal as equal
from jitgrad.torch.meanings import install_methods as _install_methods
from jitgrad.torch.meanings import logspace as logspace
from jitgrad.torch.meanings import max as max
from jitgrad.torch.meanings import median as median
from jitgrad.torch.meanings import meshgrid as meshgrid
from jitgrad.torch.meanings import min as min
from jitgrad.torch.meanings import nanmedian as nanmedian
from jitgrad.torch.meanings import nonzero as nonzero
from jitgrad.torch.meanings import sort as sort
from jitgrad.torch.meanings import split as split
from jitgrad.torch.meanings import squeeze as squeeze
from jitgrad.torch.meanings import std as std
from jitgrad.torch.meanings import var as var
from jitgrad.torch.moved import MOVED as _MOVED
from jitgrad.torch.promotion import install_promotion as _install_promotion
from jitgrad.torch.promotion import promote_types as promote_types
from jitgrad.torch.promotion import result_type as result_type
from jitgrad.torch.quantization import fake_quantize_per_channel_affine as fake_quantize_per_channel_affine
from jitgrad.torch.quantization import fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine

_OWN = ["compiling", "derivatives", "keywords", "meanings", "moved", "output", "promotion", "quantization", "random", "tuples"]
_ModuleAlias("jitgrad.torch", "jitgrad", _OWN, _MOVED).install()
_install_methods()
_install_promotion()
_install_derivatives()
_install_keywords()

_install_scripting(_jitgrad.jit)
dtype: type = _np.dtype

# not those that are imported at their first use
globals().update({k: _with_names(k, v) for k, v in vars(_jitgrad).items() if k[0] != "_" and k not in globals()})


def __getattr__(name: str) -> Any:
    found = globals()[name] = _with_names(name, getattr(_jitgrad, name))
    return found


def __dir__() -> list[str]:
    return sorted({*dir(_jitgrad), *(name for name in globals() if name[0] != "_")})


globals()["__all__"] = sorted(
    {*_jitgrad.__all__, *(name for name, v in globals().items() if name[0] != "_" and not isinstance(v, _ModuleType))}
)
