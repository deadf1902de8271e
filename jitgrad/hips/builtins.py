"""autograd.builtins: Python's own, which tensors need no others for."""

from __future__ import annotations

import builtins

dict, isinstance, list, tuple, type = builtins.dict, builtins.isinstance, builtins.list, builtins.tuple, builtins.type

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
