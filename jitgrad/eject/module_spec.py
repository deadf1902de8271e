"""What an ejected module takes, changes and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.op import OpDef


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One array that the program reads.

    Attributes:
        name: an identifier for it.
        expression: what it is of the parameters of ``run``: ``params['w']``.
        changed: whether ``run`` writes its new value into it.
        is_number: whether it is passed as a Python float.
        constant: of an array that the function itself makes: its data.
    """

    name: str
    expression: str
    shape: Shape
    dtype: Dtype
    changed: bool = False
    is_number: bool = False
    constant: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """One leaf of the result.

    Attributes:
        output: the number of the program's output, for a new array.
        expression: what it is of the parameters, for an array that existed before, or of a plain value its text.
        views: the view ops that lead from these to it, with their attributes.
        detached: it is an array of its own over their memory.
    """

    output: int | None = None
    expression: str = ""
    views: tuple[tuple[OpDef, Mapping[str, Any]], ...] = ()
    detached: bool = False


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """The interface of an ejected module.

    Attributes:
        origin: the line of the function, for readers.
        parameters: of ``run``, those of the function's call.
        state: keyword-only parameters of ``run``: arrays that the function reads from outside.
        static: (expression, text of the value) of arguments that are part of the program.
        treedef: the containers around ``results``.
        updates: (number of the input, number of the output) of inputs with new data.
        gradients: (name of the state, what it is) of gradients that the function leaves behind; None instead
            clears one.
        call_arguments: the arguments of ``run`` in the recorded call, made of the names of ``inputs``.
        compared: (name, text) of what the test compares: parts of ``result``, ``gradients``, and changed inputs.
        classes: definitions of classes that ``call_arguments`` use, by name.
    """

    name: str
    origin: str
    parameters: Sequence[str]
    state: Sequence[str]
    inputs: Sequence[InputSpec]
    static: Sequence[tuple[str, str]]
    results: Sequence[ResultSpec]
    treedef: Any
    updates: Sequence[tuple[int, int]]
    gradients: Sequence[tuple[str, ResultSpec | None]]
    call_arguments: Sequence[str]
    compared: Sequence[tuple[str, str]]
    classes: dict[str, str]
