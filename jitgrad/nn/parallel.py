"""torch.nn.parallel: the wrapper of programs for several devices, around a module that runs on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitgrad.core.missing_names import Lookup, raising
from jitgrad.nn.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """``module`` on its one device; parameters have torch's names of it, such as "module.0.weight".

    ``device_ids``, ``output_device`` and ``dim`` are taken and change nothing.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        self.module: Module = module
        self.device_ids = device_ids
        self.output_device = output_device
        self.dim = dim

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """The result of the module."""
        return self.module(*args, **keywords)


if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.nn.parallel", globals())
