"""Functions of ops as straight lines of NumPy calls: recorded on tensors without data, and written as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from jitgrad.autograd.applied_op import AppliedOp
from jitgrad.autograd.row_groups import RowGroup, grouped
from jitgrad.core.aval import Aval, aval_of_array, strong_aval
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import TraceError
from jitgrad.core.ir import Literal, Value
from jitgrad.core.number_range import check_numbers
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.core.traced_constants import add_array, add_results
from jitgrad.eager.half_loops import by_own_loop
from jitgrad.eager.large_arrays import LARGE
from jitgrad.eager.library_kernels import by_library_kernel
from jitgrad.eager.loops import by_loop
from jitgrad.eager.numpy_errors import RETURNS_ARRAYS
from jitgrad.eager.plans import needs_out, on_arrays, plain_function
from jitgrad.eager.row_programs import by_rows, kernel_of
from jitgrad.eager.row_reductions import by_row_reduction
from jitgrad.eager.run import loop_for, numpy_function, run_on_arrays
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.operand import is_number

_MAX_CONSTANT = 1 << 12  # bytes
_MAX_COMPUTED, _MAX_FOLDED = 1 << 17, 1 << 14  # bytes of a result of constants, and of what a function keeps of these


class Unrecordable(TraceError):
    """A function does something that a straight line of calls cannot."""


class Recorder:
    """The interpreter that lists the ops a function applies, on tensors without data."""

    tracing = True
    device = "cpu"
    generator_states: tuple[Any, ...] = ()
    flags = None
    orders = None

    def __init__(self) -> None:
        self.steps: list[AppliedOp] = []
        self.constants: dict[int, tuple[Tensor, np.ndarray[Any, Any]]] = {}  # by the id of the Value

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tensor:
        if op.multiple or op.moves or op.kind in (Kind.PROGRAM, Kind.FUSED):
            raise Unrecordable(op.name)
        operands = tuple([self.constant(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in operands])
        atoms = tuple([x._data if isinstance(x, Tensor) else Literal(x) for x in operands])
        if any([type(atom) not in (Value, Literal) for atom in atoms]):
            raise Unrecordable("a tensor with data")
        avals = [aval_of(op, x) for x in operands]
        check_numbers(op, operands, avals, attrs)
        expected = op.abstract(avals, attrs)
        assert isinstance(expected, Aval)
        out = Tensor(Value(expected))
        self.steps.append(AppliedOp(op, operands, avals, dict(attrs), out))
        add_results(op, atoms, attrs, (out._data,))
        return out

    def constant(self, array: Any) -> Tensor:
        data = np.array(array)
        if data.nbytes > _MAX_CONSTANT:
            raise Unrecordable("a large constant")
        tensor = Tensor(Value(aval_of_array(data)))
        self.constants[id(tensor._data)] = (tensor, data)
        add_array(tensor._data, data)
        return tensor

    def current(self, tensor: Tensor) -> Any:
        return tensor._data

    def read_grad(self, _tensor: Tensor) -> None:
        raise Unrecordable(".grad")

    def write_grad(self, _tensor: Tensor, _grad: Any) -> None:
        raise Unrecordable(".grad")

    def write(self, _target: Tensor, _value: Any) -> None:
        raise Unrecordable("an in-place change")

    def replace(self, _target: Tensor, _new: Tensor) -> None:
        raise Unrecordable("an in-place change")

    def take_over(self, _target: Tensor, _source: Tensor) -> None:
        raise Unrecordable("an in-place change")

    def knows(self, tensor: Tensor) -> bool:
        return type(tensor._data) is Value

    def share(self, _tensor: Tensor, _view: Tensor) -> None:
        """There are no changes that one could see in the other."""

    def stands_for_number(self, _tensor: Tensor) -> bool:
        return False

    def known_value(self, _tensor: Tensor, _what: str) -> None:
        """Tensors have no data."""

    def rely_on(self, _array: Any) -> None:
        raise Unrecordable("elements of an array")

    def draw(self, _generator: Any, _shape: Any, _per_element: int) -> None:
        raise Unrecordable("random numbers")

    def explain_missing_value(self, _tensor: Tensor, what: str) -> Exception:
        return Unrecordable(what)


def steps_for(steps: Sequence[AppliedOp], wanted: Iterable[Tensor], known: Collection[int] = ()) -> list[AppliedOp]:
    """Those of ``steps`` that ``wanted`` depend on, without those whose results have ids in ``known``."""
    needed = {id(tensor._data) for tensor in wanted}
    kept = []
    for step in reversed(steps):
        if id(step.out._data) in needed and id(step.out._data) not in known:
            kept.append(step)
            needed.update([id(x._data) for x in step.operands if isinstance(x, Tensor)])
    return kept[::-1]


def fold_constants(recorder: Recorder, steps: Sequence[AppliedOp], returned: Tensor) -> list[AppliedOp]:
    """Compute those of ``steps`` that read constants alone; returns the others, and lets ``recorder`` have their operands.

    Nothing is computed if ``returned`` is such a result, for a caller gets an array of its own, or if much would be kept.
    """
    known = {value: data for value, (_, data) in recorder.constants.items()}
    rest, read = [], set()
    for step in steps:
        given = [x if is_number(x) else known.get(id(x._data)) for x in step.operands]
        if any([x is None for x in given]) or step.out.aval.weak or step.out.aval.nbytes > _MAX_COMPUTED:
            rest.append(step)
            read.update([id(x._data) for x in step.operands if isinstance(x, Tensor)])
        else:
            known[id(step.out._data)] = run_on_arrays(step.op, tuple(given), step.attrs)
    made = {id(step.out._data): step.out for step in steps if id(step.out._data) in known}
    kept = {value: (made[value], known[value]) for value in read if value in made}
    if id(returned._data) in made or sum([data.nbytes for _, data in kept.values()]) > _MAX_FOLDED:
        return [*steps]
    recorder.constants.update(kept)
    return rest


class Line:
    """The text of a function under construction.

    ``named`` has the names of values by their ids, ``names`` what the text refers to.
    """

    def __init__(self, recorder: Recorder, named: Mapping[int, str]) -> None:
        self.names: dict[str, Any] = {}
        self.text: list[str] = []
        self.made: dict[int, str] = {}  # the results of steps
        self._large: set[int] = set()  # those of them that take much memory, as long as they are read
        self._recorder = recorder
        self._named = dict(named)
        for j, (value, (_, data)) in enumerate(recorder.constants.items()):
            self._named[value] = f"c{j}"
            self.names[f"c{j}"] = data

    def __getitem__(self, tensor: Tensor) -> str:
        return self._named[id(tensor._data)]

    def add_grouped(self, steps: Sequence[AppliedOp], wanted: Sequence[Tensor]) -> list[RowGroup]:
        """Write the calls of ``steps``, of which ``wanted`` are read later; rows of arrays are computed in one call.

        Returns the groups of steps that are such a call.
        """
        items = grouped(steps, {id(x._data) for x in wanted})
        for k, item in enumerate(items):
            if isinstance(item, RowGroup):
                known = {id(x._data) for x in item.operands}
                self._add_group(item, steps_for(steps, item.results, known))
            else:
                self.add([item])
            self._release(items[k + 1 :], wanted)
        return [item for item in items if isinstance(item, RowGroup)]

    def _add_group(self, group: RowGroup, steps: Sequence[AppliedOp]) -> None:
        """Write the call of ``group``, which is one of the function of ``steps`` until its kernel is compiled."""
        inner = Line(self._recorder, {id(x._data): f"a{k}" for k, x in enumerate(group.operands)})
        for k, step in enumerate(steps):
            inner.add([step])
            inner._release(steps[k + 1 :], group.results)
        arguments = ", ".join([f"a{k}" for k in range(len(group.operands))])
        plain = inner.function(f"steps({arguments})", f"({''.join(f'{inner[x]}, ' for x in group.results)})")
        j = len(self._named)
        shapes = [(x.aval.shape, x.aval.dtype) for x in group.results]
        self.names[f"f{j}"] = by_rows(kernel_of(group.program), plain, group.size, shapes, group.numbers)
        for k, x in enumerate(group.results):
            self._define(x, f"t{j + k}")
        given = ", ".join([self[x] for x in group.operands])
        self.text.append(f"{''.join(f'{self[x]}, ' for x in group.results)}= f{j}({given})")

    def _release(self, later: Sequence[AppliedOp | RowGroup], wanted: Sequence[Tensor]) -> None:
        """Give up large arrays that neither ``later`` steps nor the caller reads, as the tape does."""
        if self._large:
            read = {id(x._data) for item in later for x in item.operands if isinstance(x, Tensor)}
            dead = self._large - read - {id(x._data) for x in wanted}
            self.text += [f"{self.made[x]} = None" for x in dead]
            self._large -= dead

    def add(self, steps: Iterable[AppliedOp]) -> None:
        """Write the calls of ``steps``."""
        for step in steps:
            j = len(self._named)
            same = step.op is STOP_GRADIENT and isinstance(step.operands[0], Tensor)
            self.text.append(f"t{j} = {self[step.operands[0]] if same else self._call(j, step)}")
            self._define(step.out, f"t{j}")

    def _define(self, result: Tensor, name: str) -> None:
        key = id(result._data)
        self._named[key] = self.made[key] = name
        if result.aval.nbytes >= LARGE:
            self._large.add(key)

    def function(self, head: str, result: str) -> Callable[..., Any]:
        """The function ``head`` whose text this is."""
        lines = "".join(f"\n    {line}" for line in [*self.text, f"return {result}"])
        exec(_compiled(f"def {head}:{lines}\n"), self.names)
        function: Callable[..., Any] = self.names[head.partition("(")[0]]
        return function

    def _call(self, j: int, step: AppliedOp) -> str:
        """The call of one step; what it refers to enters ``names``."""
        op, operands, avals, attrs, out = step
        dtypes = op.dtypes(avals, **attrs)[0] if op.kind is Kind.ELEMENTWISE else [None] * len(avals)
        arguments, given, names = [], [], self.names
        for k, (x, aval, dtype) in enumerate(zip(operands, avals, dtypes, strict=True)):
            if is_number(x):  # a constant of the function
                names[f"n{j}_{k}"] = x if dtype is None else np.asarray(x, dtype)
                arguments.append(f"n{j}_{k}")
                aval = aval if dtype is None else strong_aval((), dtype)
            elif aval.weak and dtype is not None:  # a number of the forward op
                names["asarray"], names[f"d{j}_{k}"] = np.asarray, dtype
                arguments.append(f"asarray({self[x]}, d{j}_{k})")
                aval = strong_aval((), dtype)
            else:
                arguments.append(self[x])
            given.append(aval)
        expected = strong_aval(out.aval.shape, out.aval.dtype)
        plain = plain_function(op, given, attrs, expected)
        function = _on_converted(op, given, attrs, expected) if plain is None else plain
        function = by_row_reduction(op, given, attrs, expected, function)
        function = by_library_kernel(op, given, attrs, function)
        names[f"f{j}"] = by_own_loop(op, given, attrs, expected, function, _run)
        if plain is not None and needs_out(plain, expected):
            arguments.append("out=...")
        return f"f{j}({', '.join(arguments)})"


def _on_converted(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any], out: Aval) -> Callable[..., Any]:
    """`on_arrays` for operands that are arrays of the dtypes of ``avals`` for certain, where warnings are off."""
    loop = loop_for(op, avals, attrs) if op.kind is Kind.ELEMENTWISE and RETURNS_ARRAYS else None
    if loop is None:
        return on_arrays(op, avals, attrs, out)
    return by_loop(loop, numpy_function(op, avals, attrs), out, _run)


def _run(ufunc: np.ufunc, *arrays: Any, out: Any) -> Any:
    return ufunc(*arrays, out=out)


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    """Ops of all shapes share few texts."""
    return compile(text, "<line>", "exec")
