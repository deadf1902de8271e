"""Python numbers that depend on number arguments or elements of tensors, while a trace leaves their values open."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from jitgrad.compiler.number_conditions import RAISING, text_of
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import TracedValueError
from jitgrad.core.ir import Atom, Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops import arithmetic, comparison, rounding, transcendental
from jitgrad.ops.creation import asarray

# Larger ints are static. Sums and products of smaller ones fit int64 in most programs, and
# converting them to floats is exact.
LARGEST_INT = 2**31 - 1
INT_AVAL = Aval((), np.dtype(np.int64), weak=True)
FLOAT_AVAL = Aval((), np.dtype(np.float64), weak=True)


def aval_of_number(x: int | float) -> Aval:
    """The aval of the values that stand for an ``x`` of which the value is open."""
    return INT_AVAL if type(x) is int else FLOAT_AVAL


class ValueNeededError(TracedValueError):
    """The function needs the value of a number among its arguments; ``positions``: of which ones."""

    def __init__(self, positions: frozenset[int], what: str) -> None:
        super().__init__(f"{what} needs the value of the number arguments {sorted(positions)}")
        self.positions = positions


class RuntimeNumber:
    """A number argument or an element of a tensor whose value only ops read, or what Python arithmetic computed from some.

    ``isinstance`` takes it for an int or a float, as the number of eager execution. Floats and
    elements decide by their truth, their comparisons and their ints (see
    `jitgrad.compiler.decisions`). Whatever else needs the value (a shape, a text, a key of a dict, a
    function of ``math``; for an int argument a comparison, too) raises `ValueNeededError` where that
    depends on an argument; the function is then traced with the value.

    Attributes:
        value: of the graph.
        positions: of the arguments that it depends on.
        bound: of the absolute value of an int, which int64 must hold; None for a float.
        text: the Python expression of the arguments that it is (see `jitgrad.compiler.number_conditions`); "": none is known.
    """

    __slots__ = ("bound", "positions", "text", "value")
    def __init__(self, value: Value, positions: frozenset[int], bound: int | None, text: str = "") -> None:
        self.value: Value = value
        self.positions: frozenset[int] = positions
        self.bound: int | None = bound
        self.text: str = text

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return float if self.bound is None else int

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's function of a tensor."""
        numbers = [x for x in inputs if type(x) is RuntimeNumber]
        if method != "__call__" or not all(x.decides for x in numbers):
            raise self.needed(f"numpy.{ufunc.__name__}")
        return ufunc(*[Tensor(x.value) if type(x) is RuntimeNumber else x for x in inputs], **options)

    def __array_function__(self, function: Any, _types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """NumPy's function of a float64 array, as NumPy takes a Python float; of an int it needs the value."""
        if not self.decides:
            raise self.needed(f"numpy.{function.__name__}")

        def given(x: Any) -> Any:
            return asarray(x, dtype=np.float64 if x.bound is None else np.int64) if type(x) is RuntimeNumber else x

        return function(*map(given, args), **{name: given(x) for name, x in options.items()})

    def __getattr__(self, name: str) -> Any:
        if hasattr(float if self.bound is None else int, name):
            raise self.needed(f".{name}")
        raise AttributeError(name)

    @property
    def decides(self) -> bool:
        """Whether the trace may follow its value in the call that is traced, which later calls compare."""
        return self.bound is None or not self.positions

    def decided(self, what: str) -> int:
        """The int for the operation ``what``, by which the trace decides. Raises TracedValueError for a float."""
        if self.positions or self.bound is None:
            raise self.needed(what)
        return int(Tensor(self.value))

    def needed(self, what: str) -> TracedValueError:
        """The error for ``what``, which the trace remembers, as the function may catch it."""
        if not self.positions:
            return cast(TracedValueError, current_interpreter.get().explain_missing_value(Tensor(self.value), what))
        remembered: set[int] | None = getattr(current_interpreter.get(), "values_needed", None)
        if remembered is not None:
            remembered |= self.positions
        return ValueNeededError(self.positions, what)


def value_needed(trace: Any, value: Atom, what: str) -> ValueNeededError | None:
    """The error for ``what``, which ``trace`` remembers, if ``value`` depends on number arguments alone; else None."""
    behind = {value}
    for node in reversed(trace.nodes):
        if not behind.isdisjoint(node.outs):
            behind.update(node.ins)
    inputs = behind.intersection(trace.inputs)
    if not inputs or not inputs <= trace.scalars.keys():
        return None
    positions = frozenset([trace.scalars[v][0] for v in inputs])
    trace.values_needed |= positions
    return ValueNeededError(positions, what)


def argument_number(value: Value, position: int) -> RuntimeNumber:
    """The number argument ``position``, which is the graph's ``value``."""
    return RuntimeNumber(value, frozenset([position]), None if value.aval is FLOAT_AVAL else LARGEST_INT, f"a{position}")


def check_operands(op: OpDef, operands: tuple[Any, ...], avals: list[Aval], attrs: Any) -> None:
    """``op`` may read the value of a run-time number late: in a dtype that holds every value.

    Raises:
        ValueNeededError: otherwise, or if an attribute is such a number.
    """
    for attribute in attrs.values():
        _check_attribute(op, attribute)
    numbers = {k: x for k, x in enumerate(operands) if type(x) is RuntimeNumber}
    if not numbers:
        return
    if op.kind is not Kind.ELEMENTWISE or op.scalar is None:
        for x in numbers.values():
            if x.bound is not None:
                raise x.needed(op.name)
        return
    dtypes, _ = op.dtypes(avals, **attrs)
    for k, x in numbers.items():
        if dtypes[k].kind in "iu" and (x.bound is None or not holds(dtypes[k], x.bound)):
            raise x.needed(f"{op.name} of dtype {dtypes[k]}")


def _check_attribute(op: OpDef, attribute: Any) -> None:
    if type(attribute) is RuntimeNumber:
        raise attribute.needed(op.name)
    if isinstance(attribute, (tuple, list)):
        for x in attribute:
            _check_attribute(op, x)


def holds(dtype: np.dtype[Any], bound: int) -> bool:
    """Whether the dtype has all ints whose absolute value is at most ``bound``."""
    limits = np.iinfo(dtype)
    return bool(limits.min <= -bound and bound <= limits.max)


# --- operators -----------------------------------------------------------------------------------

Bound = Callable[[int, int], int]


def _sum_bound(a: int, b: int) -> int:
    return a + b


def _product_bound(a: int, b: int) -> int:
    return a * b


# name, the op between two numbers, its function for tensors, the bound of an int result
_BINARY: tuple[tuple[str, OpDef, Callable[[Any, Any], Any], Bound | None], ...] = (
    ("add", arithmetic.ADD, arithmetic.add, _sum_bound),
    ("sub", arithmetic.SUBTRACT, arithmetic.subtract, _sum_bound),
    ("mul", arithmetic.MULTIPLY, arithmetic.multiply, _product_bound),
    ("truediv", arithmetic.DIVIDE, arithmetic.divide, None),
)
_OF_TENSORS: dict[str, tuple[Callable[[Any, Any], Any], OpDef | None]] = {
    "floordiv": (rounding.floor_divide, rounding.FLOOR_DIVIDE),
    "mod": (rounding.remainder, rounding.REMAINDER),
    "and": (comparison.bitwise_and, None),
    "or": (comparison.bitwise_or, None),
    "xor": (comparison.bitwise_xor, None),
    "lshift": (comparison.bitwise_left_shift, None),
    "rshift": (comparison.bitwise_right_shift, None),
}
_WHOLE: dict[str, Callable[[Tensor], Any]] = {
    "bool": bool,
    "int": int,
    "trunc": int,
    "floor": lambda x: int(rounding.floor(x)),
    "ceil": lambda x: int(rounding.ceil(x)),
    "round": lambda x: int(rounding.round(x, 0)),
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
    "eq": comparison.equal,
    "ne": comparison.not_equal,
}


def _is_array(x: Any) -> bool:
    """Whether the result of an operator with ``x`` is a tensor."""
    return type(x) is Tensor or type(x) is np.ndarray or isinstance(x, np.generic)


def _bound_of(x: Any) -> int | None:
    if type(x) is RuntimeNumber:
        return x.bound
    return abs(x) if type(x) is int else None


def _number(name: str, op: OpDef, x: Any, y: Any, bound: Bound | None = None) -> Any:
    """``op`` of two numbers, as a number; Python's function ``name`` computes with ints that may be large."""
    bounds = (_bound_of(x), _bound_of(y))
    new = None if bound is None or bounds[0] is None or bounds[1] is None else bound(bounds[0], bounds[1])
    if any(b is not None and b > np.iinfo(np.int64).max for b in (*bounds, new)):
        return getattr(operator, name)(*[n.decided(name) if type(n) is RuntimeNumber else n for n in (x, y)])
    positions = frozenset[int]().union(*(n.positions for n in (x, y) if type(n) is RuntimeNumber))
    text = text_of(name, *[n.text if type(n) is RuntimeNumber else repr(n) for n in (x, y)])
    number = RuntimeNumber(apply_op(op, x, y)._data, positions, new, text)
    decisions = getattr(current_interpreter.get(), "decisions", None)
    if decisions is not None and text and name in RAISING and type(decisions.numbers.compute(text, positions)) is complex:
        raise number.needed("**")
    return number


def _operator(name: str, op: OpDef, function: Callable[[Any, Any], Any], bound: Bound | None, swap: bool) -> Any:
    def method(self: RuntimeNumber, other: Any) -> Any:
        x, y = (other, self) if swap else (self, other)
        if _is_array(other):
            return function(x, y)
        if type(other) in (int, float, RuntimeNumber):
            return _number(name, op, x, y, bound)
        if type(other) is bool:
            return method(self, int(other))
        if type(other) is complex:
            if self.bound is not None:
                raise self.needed(name)
            return function(x, y)
        return NotImplemented

    return method


def _with_tensor(name: str, function: Callable[[Any, Any], Any], op: OpDef | None, swap: bool = False) -> Any:
    """``op`` is for floats, of which two numbers give another."""

    def method(self: RuntimeNumber, other: Any) -> Any:
        x, y = (other, self) if swap else (self, other)
        if _is_array(other):
            return function(x, y)
        if op is not None and self.bound is None and type(other) in (int, float, RuntimeNumber):
            return _number(name, op, x, y)
        return getattr(int, f"__{'r' * swap}{name}__")(self.decided(name), other)

    return method


def _comparison(name: str, function: Callable[[Any, Any], Any]) -> Any:
    """Of two numbers a bool: an element decides by it."""

    def method(self: RuntimeNumber, other: Any) -> Any:
        if _is_array(other):
            return function(self, other)
        if type(other) not in (int, float, bool, RuntimeNumber):
            return NotImplemented
        if not (self.decides and (type(other) is not RuntimeNumber or other.decides)):
            raise self.needed(name)
        return bool(function(Tensor(self.value), other))

    return method


def _by_value(name: str) -> Any:
    """What is asked of an int."""

    def method(self: RuntimeNumber, *args: Any) -> Any:
        return getattr(int, f"__{name}__")(self.decided(f"{name}()"), *args)

    return method


def _by_tensor(name: str, convert: Callable[[Any], Any]) -> Any:
    """What is asked of a float as well: an element decides by the result."""

    def method(self: RuntimeNumber, *digits: Any) -> Any:
        if digits or not self.decides:
            raise self.needed(f"{name}()")
        return convert(Tensor(self.value))

    return method


def _power(self: Any, exponent: Any) -> Any:
    if _is_array(exponent):
        return transcendental.pow(self, exponent)
    if self.bound is None and type(exponent) in (int, float, RuntimeNumber):
        return _number("pow", transcendental.POW, self, exponent)
    return self.decided("**") ** exponent


def _unary(op: OpDef) -> Any:
    def method(self: RuntimeNumber) -> RuntimeNumber:
        text = self.text and f"{op.name}({self.text})".replace("negative(", "-(")
        return RuntimeNumber(apply_op(op, self)._data, self.positions, self.bound, text)

    return method


def _same(self: Any, *_: Any) -> Any:
    return self


def _complex(self: Any) -> complex:
    return complex(self.decided("complex()"))


def _array(self: Any, *args: Any, **options: Any) -> Any:
    raise self.needed("numpy.asarray()")


def _power_of_float(self: Any, base: Any) -> Any:
    """``base ** self``: of a positive float a float; of an int it may be either."""
    if _is_array(base):
        return transcendental.pow(base, self)
    if (type(base) is float or (type(base) is int and self.bound is None)) and base > 0:
        return _number("pow", transcendental.POW, base, self)
    return base ** self.decided("**")


_SPECIAL: dict[str, Any] = {
    "neg": _unary(arithmetic.NEGATIVE), "abs": _unary(arithmetic.ABS), "pow": _power, "rpow": _power_of_float,
    "pos": _same, "copy": _same, "deepcopy": _same, "array": _array, "complex": _complex,
}  # fmt: skip


def _attach() -> None:
    for name in "index float hash repr str format invert divmod rdivmod reduce_ex".split():
        setattr(RuntimeNumber, f"__{name}__", _by_value(name))
    for name, convert in _WHOLE.items():
        setattr(RuntimeNumber, f"__{name}__", _by_tensor(name, convert))
    for name, op, function, bound in _BINARY:
        setattr(RuntimeNumber, f"__{name}__", _operator(name, op, function, bound, swap=False))
        setattr(RuntimeNumber, f"__r{name}__", _operator(name, op, function, bound, swap=True))
    for name, (function, op_of_floats) in _OF_TENSORS.items():
        setattr(RuntimeNumber, f"__{name}__", _with_tensor(name, function, op_of_floats))
        setattr(RuntimeNumber, f"__r{name}__", _with_tensor(name, function, op_of_floats, swap=True))
    for name, function in _COMPARISONS.items():
        setattr(RuntimeNumber, f"__{name}__", _comparison(name, function))
    for name, special in _SPECIAL.items():
        setattr(RuntimeNumber, f"__{name}__", special)


_attach()
