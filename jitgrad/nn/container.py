"""Modules that hold other modules in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module, Parameter


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

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Put ``modules`` at the end."""
        for module in modules:
            self.append(module)
        return self

    def __setitem__(self, index: int, module: Module) -> None:
        names = [name for name, _ in self.named_children()]
        setattr(self, names[index], module)

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


class ModuleDict(Module):
    """Modules by names, which are their names in the state."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        self._order: list[str] = []
        self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Take ``modules`` in, by name. Raises ArgumentError for anything but Modules."""
        for name, module in dict(modules).items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise ArgumentError(f"ModuleDict: expected a Module for {name!r}, got {type(module).__name__}")
        if name in dir(type(self)) or name == "_order":
            raise ArgumentError(f"ModuleDict: the name {name!r} is that of a method; choose another one")
        if name not in self._order:
            self._order = [*self._order, name]
        setattr(self, name, module)

    def __getitem__(self, name: str) -> Any:
        if name not in self._order:
            raise KeyError(name)
        return getattr(self, name)

    def __delitem__(self, name: str) -> None:
        self._order = [kept for kept in self._order if kept != name]
        delattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def keys(self) -> list[str]:
        """The names, in order."""
        return list(self._order)

    def values(self) -> list[Module]:
        """The modules, in order."""
        return [self[name] for name in self._order]

    def items(self) -> list[tuple[str, Module]]:
        """Names and modules, in order."""
        return [(name, self[name]) for name in self._order]


class ParameterList(Module):
    """Parameters in a list, named 0, 1, ... in the state."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        for value in values:
            self.append(value)

    def append(self, value: Any) -> ParameterList:
        """Put a parameter at the end; other tensors become parameters."""
        self.register_parameter(str(len(self)), value if _is_parameter(value) else Parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Put parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._parameter_names)

    def __setitem__(self, index: int, value: Any) -> None:
        position = range(len(self))[index]
        self.register_parameter(str(position), value if _is_parameter(value) else Parameter(value))

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self.__dict__[name] for name in self._parameter_names])

    def __getitem__(self, index: Any) -> Any:
        listed = list(self)
        return ParameterList(listed[index]) if isinstance(index, slice) else listed[index]


class ParameterDict(Module):
    """Parameters by names, which are their names in the state."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        self.update(parameters or ())

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Take ``values`` in, by name; other tensors than parameters become such."""
        for name, value in dict(values).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if name in dir(type(self)):
            raise ArgumentError(f"ParameterDict: the name {name!r} is that of a method; choose another one")
        self.register_parameter(name, value if _is_parameter(value) else Parameter(value))

    def __getitem__(self, name: str) -> Any:
        if name not in self._parameter_names:
            raise KeyError(name)
        return self.__dict__[name]

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._parameter_names

    def __len__(self) -> int:
        return len(self._parameter_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """The names, in order."""
        return list(self._parameter_names)

    def values(self) -> list[Tensor]:
        """The parameters, in order."""
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Tensor]]:
        """Names and parameters, in order."""
        return [(name, self[name]) for name in self.keys()]


def _is_parameter(value: Any) -> bool:
    return Parameter.__instancecheck__(value)
