"""A directive for Sphinx, ``name-reference``: the docstrings of all public names of a module.

    :::{name-reference} jitgrad
    :functions:
    :::

With ``functions`` or ``classes`` it shows only these. A name that is another one's alias is listed with it.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def public_names(module: ModuleType) -> list[str]:
    """``__all__``, or what the module itself defines without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return sorted(
        name for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", "") == module.__name__
    )  # fmt: skip


def documented(module: ModuleType, wanted: tuple[type, ...] | None) -> dict[str, list[str]]:
    """{name: its aliases} of functions and classes; an object is shown under its own name where that is public."""
    by_object: dict[int, list[str]] = {}
    for name in public_names(module):
        value = getattr(module, name)
        is_ours = str(getattr(value, "__module__", "")).startswith("jitgrad")
        if is_ours and (inspect.isclass(value) or callable(value)) and (wanted is None or isinstance(value, wanted)):
            by_object.setdefault(id(value), []).append(name)
    shown: dict[str, list[str]] = {}
    for names in by_object.values():
        own = getattr(getattr(module, names[0]), "__name__", "")
        first = own if own in names else names[0]
        shown[first] = [name for name in names if name != first]
    return dict(sorted(shown.items()))


def entry_of(module: ModuleType, name: str, aliases: list[str], members: bool) -> list[str]:
    """reStructuredText for one name."""
    value: Any = getattr(module, name)
    kind = "autoclass" if inspect.isclass(value) else "autofunction" if inspect.isroutine(value) else "autodata"
    lines = [f".. {kind}:: {module.__name__}.{name}"]
    if kind == "autoclass" and members:
        lines += ["   :members:"]
    if kind == "autodata":
        lines += ["   :no-value:"]
    if aliases:
        lines += ["", f"   Also {', '.join(f'``{alias}``' for alias in aliases)}."]
    return [*lines, ""]


class NameReference(SphinxDirective):
    """Docstrings of the public names of one module."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "functions": directives.flag,
        "classes": directives.flag,
        "members": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        lines: list[str] = []
        for name, aliases in documented(module, None).items():
            is_class = inspect.isclass(getattr(module, name))
            if ("functions" in self.options and is_class) or ("classes" in self.options and not is_class):
                continue
            lines += entry_of(module, name, aliases, "members" in self.options)
        text = ["```{eval-rst}", *lines, "```"]
        place = nodes.section()
        place.document = self.state.document
        self.state.nested_parse(StringList(text, self.arguments[0]), self.content_offset, place)
        return list(place.children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("name-reference", NameReference)
    return {"parallel_read_safe": True}
