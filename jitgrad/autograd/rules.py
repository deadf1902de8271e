"""The gradient of an op as a function of arrays: its vjp, recorded once for operands of certain avals.

A vjp is written in ops on tensors. Where backward itself is not recorded, the tensors, their avals and the
choice of NumPy's functions are the same each time. What remains is a straight line of calls, which is
written as a Python function. For ``multiply(x, y)``, both with a gradient, it is::

    def rule(node, g):
        saved = node.saved
        x0, memory, version = saved[0]
        if memory.version != version: node.unpack()
        x1, memory, version = saved[1]
        if memory.version != version: node.unpack()
        t0 = multiply(g, x1)
        t1 = multiply(g, x0)
        return t0, t1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from jitgrad.autograd.local_gradients import call_vjp, fit_tensor
from jitgrad.core.aval import Aval, aval_of_array, strong_aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import TraceError
from jitgrad.core.ir import Literal, Value
from jitgrad.core.number_range import check_numbers
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.plan import Recipe
from jitgrad.core.tape_node import Node
from jitgrad.core.tensor import Tensor
from jitgrad.core.traced_constants import add_array, add_results
from jitgrad.eager.plans import needs_out, on_arrays, plain_function
from jitgrad.ops.arithmetic import DIVIDE, MULTIPLY
from jitgrad.ops.operand import is_number

ArrayRule = Callable[[Node, np.ndarray[Any, Any]], Sequence[Any]]

_USES = 3  # recording takes as long as some ten calls of the vjp, so it waits until an op has come back
_MAX_CONSTANT = 1 << 12  # bytes
_ANY_NUMBER = frozenset({MULTIPLY, DIVIDE})  # their vjps do not look at the value of a number


def rule_of(node: Node, recipe: Recipe) -> ArrayRule | None:
    """The rule of ``node`` with this recipe; None if there is none, or it has hardly been used."""
    if recipe.rule is None:
        recipe.uses += 1
        if recipe.uses <= _USES:
            return None
        recipe.rule = make_rule(node) or False
    return recipe.rule or None


class _Unrecordable(TraceError):
    """A vjp does something that a straight line of calls cannot."""


class _Recorder:
    """The interpreter that lists the ops a vjp applies, on tensors without data."""

    tracing = True
    device = "cpu"
    generator_states: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.steps: list[tuple[OpDef, tuple[Any, ...], list[Aval], Mapping[str, Any], Tensor]] = []
        self.constants: dict[int, tuple[Tensor, np.ndarray[Any, Any]]] = {}

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tensor:
        if op.multiple or op.moves or op.kind in (Kind.PROGRAM, Kind.FUSED):
            raise _Unrecordable(op.name)
        operands = tuple([self.constant(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in operands])
        atoms = tuple([x._data if isinstance(x, Tensor) else Literal(x) for x in operands])
        if any([type(atom) not in (Value, Literal) for atom in atoms]):
            raise _Unrecordable("a tensor with data")
        avals = [aval_of(op, x) for x in operands]
        check_numbers(op, operands, avals, attrs)
        expected = op.abstract(avals, attrs)
        assert isinstance(expected, Aval)
        out = Tensor(Value(expected))
        self.steps.append((op, operands, avals, dict(attrs), out))
        add_results(op, atoms, attrs, (out._data,))
        return out

    def constant(self, array: Any) -> Tensor:
        data = np.array(array)
        if data.nbytes > _MAX_CONSTANT:
            raise _Unrecordable("a large constant")
        tensor = Tensor(Value(aval_of_array(data)))
        self.constants[id(tensor)] = (tensor, data)
        add_array(tensor._data, data)
        return tensor

    def current(self, tensor: Tensor) -> Any:
        return tensor._data

    def read_grad(self, _tensor: Tensor) -> None:
        raise _Unrecordable(".grad")

    def write_grad(self, _tensor: Tensor, _grad: Any) -> None:
        raise _Unrecordable(".grad")

    def write(self, _target: Tensor, _value: Any) -> None:
        raise _Unrecordable("an in-place change")

    def take_over(self, _target: Tensor, _source: Tensor) -> None:
        raise _Unrecordable("an in-place change")

    def stands_for_number(self, _tensor: Tensor) -> bool:
        return False

    def known_value(self, _tensor: Tensor, _what: str) -> None:
        """Tensors have no data."""

    def rely_on(self, _array: Any) -> None:
        """A vjp reads no arrays of the user's."""

    def draw(self, _generator: Any, _shape: Any, _per_element: int) -> None:
        """A vjp draws no numbers."""

    def explain_missing_value(self, _tensor: Tensor, what: str) -> Exception:
        return _Unrecordable(what)


def make_rule(node: Node) -> ArrayRule | None:
    """The rule of ``node`` and those with its recipe; None if its vjp cannot be recorded."""
    assert node.recipe is not None and node.edges is not None and node.recipe.plan is not None
    plan = node.recipe.plan
    if plan.number in node.recipe.needed and node.op not in _ANY_NUMBER:
        return None
    recorder = _Recorder()
    named: dict[int, str] = {}
    operands: list[Any] = [*plan.avals]
    for k in node.recipe.needed:
        operands[k] = Tensor(Value(plan.avals[k]))
        named[id(operands[k])] = f"x{k}"
    g, out = Tensor(Value(plan.out)), Tensor(Value(plan.out))
    named |= {id(g): "g", id(out): "out"}
    token = current_interpreter.set(recorder)
    try:
        grads = call_vjp(node, node.edges, g, operands, out if node.recipe.needs_out else plan.out)
        fitted = [
            None if gx is None or edge is None else _fitted(node, gx, aval)
            for gx, edge, aval in zip(grads, node.edges, plan.avals, strict=True)
        ]
        return _written(node, recorder, fitted, named)
    except Exception:  # whatever it is, the vjp itself will say so
        return None
    finally:
        current_interpreter.reset(token)


def _fitted(node: Node, gx: Any, aval: Aval) -> Tensor:
    if not isinstance(gx, Tensor):  # with a mask, or a constant
        raise _Unrecordable(type(gx).__name__)
    return fit_tensor(node, gx, aval)


def _written(node: Node, recorder: _Recorder, grads: list[Tensor | None], named: dict[int, str]) -> ArrayRule:
    """The function of ``recorder``'s steps."""
    assert node.recipe is not None and node.recipe.plan is not None
    text, number, names = [], node.recipe.plan.number, dict[str, Any]()
    for k in node.recipe.needed:
        if k == number:
            text.append(f"x{k} = node.saved[{k}]")
        else:
            text += [f"x{k}, memory, version = node.saved[{k}]", "if memory.version != version: node.unpack()"]
    if node.recipe.needs_out:
        text += ["out, memory, version = node.saved_outs[0]", "if memory.version != version: node.unpack()"]
    for j, (tensor, data) in enumerate(recorder.constants.values()):
        named[id(tensor)] = f"c{j}"
        names[f"c{j}"] = data
    for j, step in enumerate(recorder.steps):
        text.append(f"t{j} = {_call(j, step, named, names)}")
        named[id(step[-1])] = f"t{j}"
    results = "".join(["None, " if g is None else f"{named[id(g)]}, " for g in grads])
    lines = "".join(f"\n    {line}" for line in [*text, f"return ({results})"])
    exec(_compiled(f"def rule(node, g):{lines}\n"), names)
    rule: ArrayRule = names["rule"]
    return rule


def _call(j: int, step: Any, named: Mapping[int, str], names: dict[str, Any]) -> str:
    """The call of one step; what it refers to enters ``names``."""
    op, operands, avals, attrs, out = step
    dtypes = op.dtypes(avals, **attrs)[0] if op.kind is Kind.ELEMENTWISE else [None] * len(avals)
    arguments, given = [], []
    for k, (x, aval, dtype) in enumerate(zip(operands, avals, dtypes, strict=True)):
        if is_number(x):  # a constant of the vjp
            names[f"n{j}_{k}"] = x if dtype is None else np.asarray(x, dtype)
            arguments.append(f"n{j}_{k}")
            aval = aval if dtype is None else strong_aval((), dtype)
        elif aval.weak and dtype is not None:  # a number of the forward op
            names["asarray"], names[f"d{j}_{k}"] = np.asarray, dtype
            arguments.append(f"asarray({named[id(x)]}, d{j}_{k})")
            aval = strong_aval((), dtype)
        else:
            arguments.append(named[id(x)])
        given.append(aval)
    expected = strong_aval(out.aval.shape, out.aval.dtype)
    plain = plain_function(op, given, attrs, expected)
    names[f"f{j}"] = on_arrays(op, given, attrs, expected) if plain is None else plain
    if plain is not None and needs_out(plain, expected):
        arguments.append("out=...")
    return f"f{j}({', '.join(arguments)})"


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    """Ops of all shapes share few texts."""
    return compile(text, "<gradient>", "exec")
