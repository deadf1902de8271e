"""Packages whose modules are those of another package: ``import jitgrad.torch.nn`` finds ``jitgrad.nn``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class ModuleAlias(MetaPathFinder, Loader):
    """Finds ``alias.x.y`` as the module ``own.x.y``, the same object, for all ``x`` but those in ``others``.

    ``moved`` says of ``x.y`` in which module of ``own`` it is, where that has another name.
    """

    def __init__(self, alias: str, own: str, others: Sequence[str] = (), moved: Mapping[str, str] | None = None) -> None:
        self.prefix: str = f"{alias}."
        self.own: str = own
        self.others: frozenset[str] = frozenset(others)
        self.moved: Mapping[str, str] = moved or {}
        self.specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """What Python's import asks for: None for what is no alias, or names no module."""
        rest = name.removeprefix(self.prefix)
        if rest == name or rest.split(".")[0] in self.others:
            return None
        own = self._own_name(name)
        if own not in sys.modules and find_spec(own) is None:
            return None
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module itself, which keeps the spec of its own name; None where an object stands in its place."""
        module = import_module(self._own_name(spec.name))
        if not isinstance(module, ModuleType):  # as `jitgrad.scipy.stats.norm`
            return None
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing for a module, which has been executed under its own name; an object takes the place of a new module."""
        assert module.__spec__ is not None
        name = module.__spec__.name
        if name in self.specs:
            module.__spec__ = self.specs.pop(name)
        else:
            sys.modules[name] = import_module(self._own_name(name))

    def _own_name(self, name: str) -> str:
        rest = name.removeprefix(self.prefix)
        return f"{self.own}.{self.moved.get(rest, rest)}"

    def install(self) -> None:
        """Let ``import`` ask here first: others would look into the folders of the packages, and load a second copy."""
        if not any(isinstance(finder, ModuleAlias) and finder.prefix == self.prefix for finder in sys.meta_path):
            sys.meta_path.insert(0, self)
