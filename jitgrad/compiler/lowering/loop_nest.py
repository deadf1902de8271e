"""The loops of a fused group: axes collapsed, buffers turned into accesses, values sorted into levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from jitgrad.compiler.fusion.axis_maps import NONE, AxisMap, Definitions
from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.lowering.kernel_ir import Access, KernelForm, KernelParameter, Schedule, Scope
from jitgrad.compiler.lowering.layout import Buffer, Location, row_major
from jitgrad.core.aval import dtype_name
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind

ArgSlot = int | tuple[Buffer, int]


@dataclass(slots=True, eq=False)
class OperandAccess:
    """An access in the making: its location's strides over the group's axes."""

    name: str
    value: Value
    location: Location | None
    strides: tuple[int, ...]  # per group axis, in elements
    written: bool = False
    access: Access | None = None


@dataclass(slots=True)
class ArgTable:
    """Parameters and the words that go with them."""

    params: list[KernelParameter] = field(default_factory=list)
    words: list[ArgSlot] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, kind: str, word: ArgSlot, note: str = "") -> str:
        if name not in self.names:
            self.names[name] = len(self.params)
            self.params.append(KernelParameter(name, kind, note))
            self.words.append(word)
        return name


class LoopNest:
    """The loops of one group, its operands, and the `Scope` of every value."""

    def __init__(self, node: TraceNode, locate: Callable[[Value], Location], in_place: dict[int, Value]) -> None:
        self.group: Group = node.attr("group")
        self.body: Graph = node.attr("body")
        self.locate = locate
        self.in_place = in_place  # id of an output -> the input whose memory it takes
        self.definitions = Definitions(self.body)
        self.outputs = {id(v): v for v in self.body.outputs if isinstance(v, Value)}
        self.table = ArgTable()
        self.windows: dict[tuple[int, AxisMap], OperandAccess] = {}
        self.level: dict[int, int] = {}
        self.kind: dict[int, Scope] = {}
        self.split = self.group.schedule.split
        self.computed = {id(node.out) for node in self.group.nodes}
        self.counter = 0
        self.prepare()
        self.name_windows()
        self.classify()

    def apply(self, schedule: Schedule) -> None:
        """Give every operand its access, which depends on the schedule: which stride is 1 in the loops that run."""
        self.vectorize_rows = schedule.form is KernelForm.VECTORIZED_ROWS
        for window in self.windows.values():
            window.access = self.access(window, window.name in schedule.transposed)

    # --- axes ----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Windows for everything read and written, then the collapsed loop axes."""
        for node in self.group.nodes:
            for read, axes in self.group.operand_maps(node, self.definitions):
                if isinstance(read.root, Value) and id(read.root) not in self.computed:
                    self.window(read.root, axes, self.locate(read.root))
            if node.op.kind is Kind.INDEX:
                self.iota(node)
        for node in self.group.nodes:
            if id(node.out) in self.outputs:
                window = self.window(node.out, self.group.out_map(node), self.locate(node.out))
                window.written = True
        self.collapse()

    def window(self, value: Value, axes: AxisMap, location: Location) -> OperandAccess:
        key = (id(value), axes)
        if key not in self.windows:
            strides = [0] * len(self.group.sizes)
            for k, axis in enumerate(axes):
                if axis != NONE:
                    strides[axis] += location.strides[k]
            self.windows[key] = OperandAccess("", value, location, tuple(strides))
        return self.windows[key]

    def iota(self, node: TraceNode) -> None:
        axes = self.group.out_map(node)
        along = node.attr("axis")
        shape = node.out.aval.shape
        own = row_major(shape) if along is None else tuple(int(k == along) for k in range(len(shape)))
        strides = [0] * len(self.group.sizes)
        for k, axis in enumerate(axes):
            if axis != NONE:
                strides[axis] += own[k]
        self.windows[id(node), axes] = OperandAccess("", node.out, None, tuple(strides))  # its result may have one, too

    def collapse(self) -> None:
        """Join neighbouring axes that every window walks as one; then decide which run outside."""
        sizes = self.group.sizes
        joined: list[list[int]] = []
        for axis in range(len(sizes)):
            if joined and axis != self.split and self._walks_on(joined[-1][-1], axis):
                joined[-1].append(axis)
            else:
                joined.append([axis])
        split = self.split
        if split is None:
            outer, inner = joined[:-1], joined[-1:]
        else:
            outer = [axes for axes in joined if axes[0] < split]
            inner = [axes for axes in joined if axes[0] >= split]
        self.outer_axes = [axes[-1] for axes in outer]  # the stride of a joined axis is that of its last part
        self.inner_axes = [axes[-1] for axes in inner]
        self.outer_sizes = [prod(sizes[k] for k in axes) for axes in outer]
        self.inner_sizes = [prod(sizes[k] for k in axes) for axes in inner]
        self.inner_members = {k for axes in inner for k in axes}
        self.outer_names = tuple(f"m{k}" for k in range(len(outer)))
        self.inner_names = tuple(f"n{k}" if len(inner) > 1 else "n" for k in range(len(inner)))

    def _walks_on(self, a: int, b: int) -> bool:
        n = self.group.sizes[b]
        return all(w.strides[a] == w.strides[b] * n for w in self.windows.values())

    # --- parameters ----------------------------------------------------------------------------------------------

    def name_windows(self) -> None:
        """Pointer parameters (one per buffer position), then sizes; `apply` adds the strides that are no constant."""
        ins = outs = 0
        shared = {id(source): out for out, source in self._in_place_pairs()}
        for window in self.windows.values():
            if window.location is None:
                self.counter += 1
                window.name = f"i{self.counter}"
                continue
            if not window.written and id(window.value) in shared:
                continue
            kind = dtype_name(window.value.aval.dtype) + "*"
            word = (window.location.buffer, window.location.offset)
            if window.written:
                window.name, outs = f"y{outs}", outs + 1
            else:
                window.name, ins = f"x{ins}", ins + 1
            self.table.add(window.name, kind, word, str(window.value.aval))
        for window in self.windows.values():
            if not window.name:
                out = shared[id(window.value)]
                window.name = next(w.name for w in self.windows.values() if w.written and w.value is out)
        for name, size in zip(self.outer_names[1:], self.outer_sizes[1:], strict=True):
            self.table.add(name, "i64", size)
        for name, size in zip(self.inner_names, self.inner_sizes, strict=True):
            self.table.add(name, "i64", size)

    def _in_place_pairs(self) -> list[tuple[Value, Value]]:
        return [(self.outputs[key], source) for key, source in self.in_place.items() if key in self.outputs]

    def access(self, window: OperandAccess, transposed: bool) -> Access:
        def stride(axis: int, letter: str, position: int) -> str:
            step = window.strides[axis]
            if step == 0:
                return "0"
            per_row = not any(window.strides[k] for k in self.inner_axes)
            lanes = transposed or (self.vectorize_rows and axis == self.outer_axes[-1])
            if step == 1 and (letter == "inner" or per_row or lanes):
                return "1"
            if letter == "outer" and not per_row and len(self.inner_names) == 1 and step == self.inner_sizes[0]:
                return self.inner_names[0]  # rows lie one after the other
            return self.table.add(f"{window.name}_{letter[0]}{position}", "i64", step)

        outer = tuple(stride(axis, "outer", k) for k, axis in enumerate(self.outer_axes))
        inner = tuple(stride(axis, "inner", k) for k, axis in enumerate(self.inner_axes))
        return Access(window.name, window.value.aval.dtype, outer, inner, index=window.location is None)

    # --- classification ------------------------------------------------------------------------------------------

    def axes_kind(self, axes: AxisMap) -> Scope:
        along = set(axes) - {NONE}
        if along & self.inner_members:
            return Scope.ELEMENT
        return Scope.ROW if along else Scope.SCALAR

    def classify(self) -> None:
        """Kind and level of every computed value. The level counts the sweeps that must be over before."""
        schedule = self.group.schedule
        for node in self.group.nodes:
            key = id(node.out)
            operands = [self.level.get(id(read.root), 0) for read, _ in self.group.operand_maps(node, self.definitions)]
            level = max(operands, default=0)
            if id(node) in schedule.epilogue or id(node) in schedule.merged:
                self.kind[key], self.level[key] = Scope.EPILOGUE, level
                continue
            self.kind[key] = self.axes_kind(self.group.out_map(node))
            self.level[key] = level + (id(node) in schedule.rows)

    def bytes_moved(self) -> int:
        """Bytes of everything that is read and written, each buffer once."""
        seen = {(w.location.buffer, w.location.offset): w.value.aval.nbytes for w in self.windows.values() if w.location}
        return sum(seen.values())

    def new_local(self, letter: str) -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def lies_across(self, window: OperandAccess) -> bool:
        """Whether elements of neighbouring rows lie side by side in memory, and those of a row do not."""
        return window.strides[self.outer_axes[-1]] == 1 and window.strides[self.inner_axes[0]] not in (0, 1)
