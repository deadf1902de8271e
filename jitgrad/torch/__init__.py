"""torch's names with torch's meanings: ``import jitgrad.torch as torch`` is all that changes; imports everything below it.

Names are those of `jitgrad`, the same functions, but for the few to which NumPy and torch give different meanings. From
this import on the methods of tensors have torch's meaning as well, in the whole process: ``x.max(1)`` is a pair.
"""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import Any

import jitgrad as _jitgrad
from jitgrad.core.module_alias import ModuleAlias as _ModuleAlias
from jitgrad.torch.meanings import bfloat16 as bfloat16
from jitgrad.torch.meanings import equal as equal
from jitgrad.torch.meanings import install_methods as _install_methods
from jitgrad.torch.meanings import max as max
from jitgrad.torch.meanings import median as median
from jitgrad.torch.meanings import meshgrid as meshgrid
from jitgrad.torch.meanings import min as min
from jitgrad.torch.meanings import nonzero as nonzero
from jitgrad.torch.meanings import sort as sort
from jitgrad.torch.meanings import split as split
from jitgrad.torch.meanings import squeeze as squeeze
from jitgrad.torch.meanings import std as std
from jitgrad.torch.meanings import var as var

_ModuleAlias("jitgrad.torch", "jitgrad", ["meanings"]).install()
_install_methods()

# not those that are imported at their first use
globals().update({k: v for k, v in vars(_jitgrad).items() if k[0] != "_" and k not in globals()})


def __getattr__(name: str) -> Any:
    found = globals()[name] = getattr(_jitgrad, name)
    return found


def __dir__() -> list[str]:
    return sorted({*dir(_jitgrad), *(name for name in globals() if name[0] != "_")})


globals()["__all__"] = sorted(
    {*_jitgrad.__all__, *(name for name, v in globals().items() if name[0] != "_" and not isinstance(v, _ModuleType))}
)
