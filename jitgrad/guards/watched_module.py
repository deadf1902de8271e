"""Notices that a function of jitgrad's own modules was replaced, at the cost of one check for all."""

from __future__ import annotations

from types import ModuleType
from typing import Any

REPLACED = [0]  # how often an attribute of a watched module got another value


class WatchedModule(ModuleType):
    """A module that counts replacements of its attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get(name, value) is not value:
            REPLACED[0] += 1
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        REPLACED[0] += 1
        super().__delattr__(name)


def watch_module(module: ModuleType) -> None:
    """Count replacements of attributes of ``module`` from now on."""
    if type(module) is ModuleType:
        module.__class__ = WatchedModule
