"""Modules that hold other modules in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.nn.module import Module


class ModuleList(Module):
    """Modules in a list, named 0, 1, ... in the state."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> ModuleList:
        """Put ``module`` at the end. Raises ArgumentError if it is no Module."""
        if not isinstance(module, Module):
            raise ArgumentError(f"{type(self).__name__}: expected a Module, got {type(module).__name__}")
        setattr(self, str(len(self)), module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: Any) -> Any:
        listed = list(self.children())
        return self._of(listed[index]) if isinstance(index, slice) else listed[index]

    def _of(self, modules: list[Module]) -> ModuleList:
        return ModuleList(modules)


class Sequential(ModuleList):
    """``Sequential(a, b)(x)`` is ``b(a(x))``; a mapping gives the modules names."""

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                setattr(self, name, module)
        else:
            super().__init__(modules)

    def forward(self, x: Any) -> Any:
        for module in self.children():
            x = module(x)
        return x

    def _of(self, modules: list[Module]) -> ModuleList:
        return Sequential(*modules)
