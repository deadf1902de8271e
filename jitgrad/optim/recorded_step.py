"""The eager step of an optimizer as lines of NumPy calls: one for what all parameters share, and one for each kind of them.

An update of a small parameter is a dozen ops, and there are many parameters. What an update does depends on the avals
of its tensors and on the options of their group alone. So it is recorded once, as the gradient of an op is, and written as
a function of arrays, which changes parameters and state in place in the order of the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jitgrad.autograd.lines import Line, Recorder, Unrecordable
from jitgrad.autograd.rule_parts import recording
from jitgrad.core.aval import Aval, aval_of_array
from jitgrad.core.context import creation_device, current_interpreter
from jitgrad.core.ir import Value
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.eager import numpy_errors
from jitgrad.optim.one_pass import in_one_pass
from jitgrad.optim.param_group import ParamGroup

_USES = 3  # recording takes as long as several steps
_METHODS = frozenset({"advance", "prepare", "update", "update_one"})
_ndarray = np.ndarray
_other_interpreter = current_interpreter.other


class Stepped(Protocol):
    """What a step is made of."""

    params: tuple[Tensor, ...]
    param_groups: list[ParamGroup]

    @property
    def state_lists(self) -> list[list[Tensor]]:
        """State with a tensor for each parameter."""

    def follow_parameters(self) -> None:
        """Move state to where the parameters are."""

    def advance(self) -> None:
        """What comes before all groups."""

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """What the updates of a group share."""

    def update_one(self, group: ParamGroup, k: int, g: Tensor, common: Sequence[Tensor]) -> None:
        """The update of parameter ``k``."""


class _StepRecorder(Recorder):
    """Records ops on tensors with data, which are read and changed in place at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.lifted: dict[int, tuple[Tensor, Tensor]] = {}  # by the id of a tensor: it, and what stands for it
        self.writes: dict[int, list[tuple[Tensor, Tensor]]] = {}  # by the number of steps before: target and value

    def lift(self, x: Any) -> Any:
        """What stands for the contents of ``x`` at this time: its memory."""
        if type(x) is not Tensor or type(x._data) is Value:
            return x
        if type(x._data) is not _ndarray:
            raise Unrecordable("a tensor elsewhere")
        if id(x) not in self.lifted:
            if not x.aval.weak:
                x._aval = aval_of_array(x._data)
            self.lifted[id(x)] = x, Tensor(Value(x.aval))
        return self.lifted[id(x)][1]

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tensor:
        return super().apply(op, tuple([self.lift(x) for x in operands]), attrs)

    def current(self, tensor: Tensor) -> Any:
        return self.lift(tensor)._data

    def write(self, target: Tensor, value: Tensor) -> None:
        if type(target._data) is not _ndarray:
            raise Unrecordable("an in-place change")
        self.lift(target)
        self.writes.setdefault(len(self.steps), []).append((target, self.lift(value)))

    def function(self, given: Sequence[Tensor], returned: Sequence[Tensor]) -> Callable[..., Any]:
        """The recorded steps as a function of ``given`` and of the lifted tensors, in their order."""
        named = {id(x._data): f"a{k}" for k, x in enumerate(given)}
        named |= {id(x._data): f"x{k}" for k, (_, x) in enumerate(self.lifted.values())}
        line = Line(self, named)
        line.names["copyto"] = np.copyto
        last = self._last_uses(returned)
        for k in range(len(self.steps) + 1):
            for target, value in self.writes.get(k, ()):
                line.text.append(f"copyto({line[self.lift(target)]}, {line[value]})")
            dead = [name for value, name in line.made.items() if last.get(value, -1) == k]
            if dead:
                line.text.append(f"{' = '.join(dead)} = None")
            line.add(self.steps[k : k + 1])
        head, result = f"step({', '.join(named.values())})", f"({''.join(f'{line[x]}, ' for x in returned)})"
        function = line.function(head, result)
        return function if returned else self._in_one_pass(list(named), function) or function

    def _in_one_pass(self, given: Sequence[int], function: Callable[..., Any]) -> Callable[..., Any] | None:
        """`in_one_pass` of ``function``, whose arguments are the values with the ids ``given``; None if a write shows in a
        later step, or is more than a copy."""
        places = {value: k for k, value in enumerate(given)}
        written: dict[int, Tensor] = {}
        made = {id(step.out._data) for step in self.steps}
        for k in sorted(self.writes):
            for target, value in self.writes[k]:
                stand_in = self.lift(target)
                later = {id(x._data) for step in self.steps[k:] for x in step.operands if isinstance(x, Tensor)}
                if id(stand_in._data) in later or id(value._data) not in made or value.aval != stand_in.aval:
                    return None
                written[places[id(stand_in._data)]] = value
        return in_one_pass(self.steps, written, places, function) if written else None

    def _last_uses(self, returned: Sequence[Tensor]) -> dict[int, int]:
        """By the id of a value, the number of steps after which nobody reads it."""
        last: dict[int, int] = {}
        for k, step in enumerate(self.steps):
            last.update({id(x._data): k + 1 for x in step.operands if isinstance(x, Tensor)})
        for k, pairs in self.writes.items():
            for _, value in pairs:
                last[id(value._data)] = max(k, last.get(id(value._data), 0))
        return {value: k for value, k in last.items() if value not in {id(x._data) for x in returned}}


class _Recorded:
    """A recorded function of tensors that it reads, and of which it changes those in ``written``."""

    __slots__ = ("avals", "function", "given", "tensors", "written")

    def __init__(
        self, function: Callable[..., Any], given: tuple[Aval, ...], tensors: list[Tensor], written: list[int]
    ) -> None:
        self.function = function
        self.given = given
        self.tensors = tensors
        self.avals = [x._aval for x in tensors]
        self.written = written

    def run(self, given: Sequence[np.ndarray[Any, Any]], origin: Origin) -> Any:
        """What the function returns; None if a tensor is not what it was."""
        arrays = [x._data for x in self.tensors]
        for x, aval, data in zip(self.tensors, self.avals, arrays, strict=True):
            if x._aval is not aval or type(data) is not _ndarray:
                return None
        for k in self.written:
            if not arrays[k].flags.writeable:
                return None
        result = self.function(*given, *arrays)
        for k in self.written:
            self.tensors[k]._storage.bump(origin)
        return result


class RecordedStep:
    """The steps of one optimizer, recorded when some have passed, and anew when an option has changed."""

    def __init__(self, optimizer: Stepped) -> None:
        self._optimizer = optimizer
        self._key: Any = None
        self._uses = 0
        self._head: _Recorded | None = None
        self._common: list[list[Aval]] = []  # of each group
        self._updates: dict[int, _Recorded | None] = {}  # by the number of the parameter
        self._kinds: dict[Any, tuple[_StepRecorder, _Recorded] | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"optimizer": self._optimizer}  # functions of text cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def run(self, grads: Sequence[Tensor | None]) -> bool:
        """Make the step for these gradients; False if it is to be made op by op."""
        if _other_interpreter() is not None or creation_device.get() is not None or not self._is_known():
            return False
        assert self._head is not None
        origin = Origin.capture()
        silence = numpy_errors.silence()
        try:
            common = self._head.run((), origin)
            if common is None:
                self._key = None
                return False
            left = self._run_updates(grads, common, origin)
        finally:
            numpy_errors.restore(silence)  # type: ignore[arg-type]
        if left:
            self._optimizer.follow_parameters()
        for group, k, g, shared in left:
            self._optimizer.update_one(group, k, g, [Tensor(x, aval) for x, aval in shared])
        return True

    def _run_updates(self, grads: Sequence[Tensor | None], common: Sequence[Any], origin: Origin) -> list[Any]:
        """Run the updates that are recorded; returns the others."""
        left, first = [], 0
        for group, avals in zip(self._optimizer.param_groups, self._common, strict=True):
            shared = common[first : first + len(avals)]
            first += len(avals)
            for k in range(group.first, group.first + len(group.params)):
                g = grads[k]
                if g is None:
                    continue
                update = self._updates.get(k)
                if update is None or type(g._data) is not _ndarray or (g._aval or g.aval) is not update.given[0]:
                    update = self._updates[k] = self._recorded(group, k, g, avals)
                if update is None or update.run((g._data, *shared), origin) is None:
                    left.append((group, k, g, list(zip(shared, avals, strict=True))))
        return left

    def _is_known(self) -> bool:
        """Whether what all parameters share is recorded for the options as they are."""
        key = [
            (id(group.lr), len(group.params), *[id(x) if isinstance(x, Tensor) else x for x in group.options.values()])
            for group in self._optimizer.param_groups
        ]
        if key != self._key:
            self._key, self._uses, self._head = key, 0, None
            self._updates, self._kinds = {}, {}
        self._uses += 1
        if self._uses == _USES + 1:
            self._record_head()
        return self._head is not None

    def _record_head(self) -> None:
        if not _METHODS.isdisjoint(vars(self._optimizer)):  # somebody's own
            return
        recorder = _StepRecorder()
        try:
            with recording(recorder):
                self._optimizer.advance()
                common = [self._optimizer.prepare(group) for group in self._optimizer.param_groups]
            returned = [recorder.lift(x) for shared in common for x in shared]
            function = recorder.function((), returned)
        except Exception:  # whatever it is, the step itself will say so
            return
        tensors = [x for x, _ in recorder.lifted.values()]
        self._common = [[x.aval for x in shared] for shared in common]
        self._head = _Recorded(function, (), tensors, _written(recorder, tensors))

    def _recorded(self, group: ParamGroup, k: int, g: Tensor, common: Sequence[Aval]) -> _Recorded | None:
        """The update of parameter ``k``, from that of another one with the same avals where there is one."""
        if type(g._data) is not _ndarray:
            return None
        optimizer = self._optimizer
        lists = optimizer.state_lists
        own = [optimizer.params[k], *[tensors[k] for tensors in lists]]
        if any(type(x._data) is not _ndarray for x in own):
            return None
        kind = (group.first, g.aval, *[x.aval for x in own])
        if kind not in self._kinds:
            self._kinds[kind] = self._record_update(group, k, g, common)
        found = self._kinds[kind]
        if found is None:
            return None
        recorder, update = found
        model = self._owner(recorder, lists)
        tensors = [x if place is None else own[place] for x, place in zip(update.tensors, model, strict=True)]
        for x in tensors:
            if not x.aval.weak:
                x._aval = aval_of_array(x._data)
        return _Recorded(update.function, (aval_of_array(g._data),), tensors, update.written)

    def _owner(self, recorder: _StepRecorder, lists: list[list[Tensor]]) -> list[int | None]:
        """Which of a parameter's own tensors each lifted one is, a parameter itself being the first; None: shared ones."""
        places: dict[int, int] = {id(p): 0 for p in self._optimizer.params}
        for j, tensors in enumerate(lists):
            places |= {id(x): j + 1 for x in tensors}
        return [places.get(id(x)) for x, _ in recorder.lifted.values()]

    def _record_update(
        self, group: ParamGroup, k: int, g: Tensor, common: Sequence[Aval]
    ) -> tuple[_StepRecorder, _Recorded] | None:
        recorder = _StepRecorder()
        given = [Tensor(Value(aval_of_array(g._data))), *[Tensor(Value(aval)) for aval in common]]
        try:
            with recording(recorder):
                self._optimizer.update_one(group, k, given[0], given[1:])
            function = recorder.function(given, ())
        except Exception:  # as above
            return None
        tensors = [x for x, _ in recorder.lifted.values()]
        return recorder, _Recorded(function, (given[0].aval,), tensors, _written(recorder, tensors))


def _written(recorder: _StepRecorder, tensors: Sequence[Tensor]) -> list[int]:
    targets = {id(target) for pairs in recorder.writes.values() for target, _ in pairs}
    return [k for k, x in enumerate(tensors) if id(x) in targets]

