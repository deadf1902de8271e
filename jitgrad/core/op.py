"""`OpDef`, the record of an op, which eager execution, gradients, kernels and tests read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from jitgrad.core.aval import Aval, Dtype, DtypeRule, Shape, broadcast_shapes, float_dtype
from jitgrad.core.errors import AutogradError, OpDefinitionError, ShapeError
from jitgrad.core.monoid import Monoid
from jitgrad.core.parameters import parameters_of
from jitgrad.vecmath import FUNCTIONS


class Kind(Enum):
    """How the compiler may treat an op."""

    ELEMENTWISE = "elementwise"  # one scalar expression per output element; operands broadcast
    REDUCE = "reduce"  # a monoid over the axes in attr ``axis``, which disappear from the shape
    # the same elements at other indices: broadcast_to, reshape, permute_dims, ...
    MOVEMENT = "movement"
    INDEX = "index"  # no operands: each element is a function of its own index (iota)
    OPAQUE = "opaque"  # anything else: runs as a call of its own
    FUSED = "fused"  # a group of the compiler; attr ``body`` is its graph
    PROGRAM = "program"  # a compiled function as an op


Vjp = Callable[..., Any]


@dataclass(frozen=True, eq=False, slots=True)
class OpDef:
    """One op.

    ``eager(*arrays, **attrs)`` computes it with NumPy, on arrays of the operand dtypes.
    ``abstract(avals, attrs)`` gives the avals of its results. ``vjp`` is either a tuple with one
    function (or None) per operand, each returning that operand's gradient, or a single function
    returning a tuple; both are called as ``(g, out, *operands, **attrs)`` on Tensors and are
    written in ops. A parameter whose name starts with an underscore is not read, so nothing is
    saved for it: the vjp gets the operand's Aval (shape and dtype) instead.
    """

    name: str
    kind: Kind
    operands: tuple[str, ...]
    eager: Callable[..., Any]
    abstract: Callable[[Sequence[Aval], Mapping[str, Any]], Aval | tuple[Aval, ...]]
    attrs: tuple[str, ...] = ()
    variadic: bool = False
    vjp: tuple[Vjp | None, ...] | Vjp | None = None
    scalar: str | None = None
    monoid: Monoid | None = None
    dtypes: DtypeRule = float_dtype
    domain: tuple[str, ...] = ()
    sample_attrs: Mapping[str, Any] = field(default_factory=dict)
    multiple: bool = False  # results are a tuple
    weak_results: bool = False  # `abstract` says which results promote like Python numbers though the operands do not
    views: bool = False  # eager may return a view of its first operand
    renames: bool = False  # movement that only renames, adds or repeats axes: free inside a kernel
    keeps_order: bool = False  # movement to other axes that leaves the elements in their order
    moves: bool = False  # to another device; eager takes arrays of any place
    checks: bool = False  # raises where an operand is wrong, so it stays in programs though nothing reads its result
    contraction: bool = False  # a matrix product, which BLAS computes
    fills: bool = False  # the CPU target's machine code for it writes to memory that the program provides
    partial_vjp: bool = False  # the vjp gets None for results without a gradient, where others get zeros
    takes_complex: bool = False  # defined for complex operands; others refuse them
    per_line: bool = False  # computes each line along attr ``axis`` by itself
    # Machine code without contraction, of ``scalar`` or of this function in ops, has the bits of ``eager``, which takes longer.
    one_loop: bool | Callable[..., Any] = False
    reads_in_order: bool = False  # calls take operands whose elements lie in row-major order
    library_kernel: bool = False  # eager calls on large arrays may run its kernel of `jitgrad.runtime.library`
    # The result is the first operand but for some elements, and takes its memory if nothing reads it later; the op checks
    # all indices before it changes any element.
    updates_first_operand: bool = False
    saves: tuple[frozenset[int], ...] = ()  # per vjp function: which operands it reads
    saves_out: tuple[bool, ...] = ()
    # (avals, attrs) -> a function of arrays that does what ``eager`` does with less preparation, or None
    prepare: Callable[[Sequence[Aval], Mapping[str, Any]], Callable[..., Any] | None] | None = None
    function: Callable[..., Any] | None = None  # a user-defined scalar function with control flow
    # Plans by the ids of operands' avals (see `jitgrad.core.plan`), made at the first use; None where there is none.
    plans: dict[Any, Any] = field(init=False, default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def missing_vjp(_g: Any, _out: Any, *_operands: Any, **_attrs: Any) -> Any:
    """The vjp of an op without one: backward refuses it, for the gradient would be wrong."""
    raise AutogradError("a gradient reaches an op without a vjp")


REGISTRY: dict[str, OpDef] = {}

# Functions that a scalar expression may call: vecmath, and intrinsics of kernels.
SCALAR_FUNCTIONS = frozenset({*FUNCTIONS, "abs", "sign", "left_shift", "right_shift", "logical_xor", "philox_bits"})


def parse_signature(signature: str) -> tuple[str, tuple[str, ...], tuple[str, ...], bool]:
    """``"name(x, y, *, attr)"`` -> (name, operands, attrs, variadic); ``*xs``: variadic."""
    try:
        tree = ast.parse(f"def {signature}: pass").body[0]
        assert isinstance(tree, ast.FunctionDef)
    except (SyntaxError, AssertionError):
        raise OpDefinitionError(f"op signature {signature!r}: expected 'name(operand, ..., *, attr, ...)'") from None
    operands = tuple(a.arg for a in tree.args.args)
    if tree.args.vararg is not None:
        return tree.name, (*operands, tree.args.vararg.arg), tuple(a.arg for a in tree.args.kwonlyargs), True
    return tree.name, operands, tuple(a.arg for a in tree.args.kwonlyargs), False


def _reads(vjp: Vjp | None, operands: int) -> tuple[frozenset[int], bool]:
    """The operand positions that ``vjp`` reads, and whether it reads the output, by its
    parameters."""
    if vjp is None:
        return frozenset(), False
    parameters = parameters_of(vjp)
    names = [*parameters.positional]
    if parameters.rest:
        names += [parameters.rest] * (operands + 2 - len(names))
    read = [not name.startswith("_") for name in names]
    return frozenset(k - 2 for k in range(2, len(read)) if read[k]), len(read) > 1 and read[1]


@lru_cache(maxsize=2048)
def parsed_scalar(scalar: str) -> ast.expr:
    """The syntax tree of a scalar expression."""
    return ast.parse(scalar, mode="eval").body


def _check_scalar(name: str, scalar: str, operands: Sequence[str], attrs: Sequence[str]) -> None:
    try:
        tree = ast.parse(scalar, mode="eval")
    except SyntaxError as error:
        raise OpDefinitionError(f"op {name!r}: scalar expression {scalar!r} is no expression: {error.msg}") from None
    allowed = {*operands, *attrs}
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    bad = sorted(
        n.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Name) and n.id not in (SCALAR_FUNCTIONS if id(n) in called else allowed)
    )
    if bad:
        raise OpDefinitionError(
            f"op {name!r}: scalar expression {scalar!r} uses {bad}; it may use {sorted(allowed)} "
            f"and the functions {sorted(SCALAR_FUNCTIONS)}"
        )


def define(
    signature: str,
    *,
    kind: Kind,
    eager: Callable[..., Any],
    abstract: Callable[[Sequence[Aval], Mapping[str, Any]], Aval | tuple[Aval, ...]],
    vjp: tuple[Vjp | None, ...] | Vjp | None = None,
    register: bool = True,
    **rest: Any,
) -> OpDef:
    """Make an OpDef and check that its parts agree; built-in ops enter the registry.

    Raises:
        OpDefinitionError: if the parts contradict each other or the name is taken.
    """
    name, operands, attrs, variadic = parse_signature(signature)
    if isinstance(vjp, tuple) and not variadic and len(vjp) != len(operands):
        raise OpDefinitionError(f"op {name!r}: {len(vjp)} vjp functions for {len(operands)} operands {operands}")
    if (scalar := rest.get("scalar")) is not None:
        _check_scalar(name, scalar, operands, attrs)
    functions = vjp if isinstance(vjp, tuple) else (vjp,)
    reads = [_reads(f, 64 if variadic else len(operands)) for f in functions]
    op = OpDef(
        name=name,
        kind=kind,
        operands=operands,
        attrs=attrs,
        variadic=variadic,
        eager=eager,
        abstract=abstract,
        vjp=vjp,
        saves=tuple(r[0] for r in reads),
        saves_out=tuple(r[1] for r in reads),
        **rest,
    )
    if register:
        if name in REGISTRY:
            raise OpDefinitionError(f"op {name!r} is defined twice")
        REGISTRY[name] = op
    return op


def define_elementwise(
    signature: str,
    *,
    scalar: str | None,
    eager: Callable[..., Any],
    vjp: tuple[Vjp | None, ...] | Vjp | None = None,
    dtypes: DtypeRule = float_dtype,
    **rest: Any,
) -> OpDef:
    """Define an elementwise op: operands broadcast, dtypes follow ``dtypes``, ``scalar`` is the
    kernel expression."""
    name, _, attrs, _ = parse_signature(signature)

    def result(avals: Sequence[Aval], attributes: Mapping[str, Any]) -> Aval:
        dtype: Dtype = dtypes(avals, **attributes)[1]
        return Aval(broadcast_shapes(name, avals), dtype, weak=all(a.weak for a in avals) and dtype.kind != "b")

    @lru_cache(maxsize=4096)
    def cached_result(*fields: tuple[Shape, Dtype, bool]) -> Aval:
        return result([Aval(*aval) for aval in fields], {})

    def abstract(avals: Sequence[Aval], attributes: Mapping[str, Any]) -> Aval:
        return result(avals, attributes) if attrs else cached_result(*[(a.shape, a.dtype, a.weak) for a in avals])

    return define(
        signature, kind=Kind.ELEMENTWISE, scalar=scalar, eager=eager, vjp=vjp, dtypes=dtypes, abstract=abstract, **rest
    )


def reduced_shape(shape: Shape, axis: Sequence[int]) -> Shape:
    """``shape`` without the axes in ``axis``."""
    return tuple(n for k, n in enumerate(shape) if k not in axis)


def define_reduction(monoid: Monoid, vjp: Vjp | None = None, **rest: Any) -> OpDef:
    """Define the op that reduces with ``monoid`` over the axes in attribute ``axis``, which disappear."""

    def abstract(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
        (x,), axis = avals, attrs["axis"]
        if not monoid.has_empty_result and any(x.shape[k] == 0 for k in axis):
            raise ShapeError(f"{monoid.name} over axes {axis} of {x}: an empty axis has no {monoid.name}")
        return Aval(reduced_shape(x.shape, axis), monoid.result(x.dtype))

    def dtypes(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
        dtype = monoid.result(avals[0].dtype)
        return (dtype,), dtype

    return define(
        f"{monoid.name}(x, *, axis)",
        kind=Kind.REDUCE,
        monoid=monoid,
        eager=monoid.reduce,
        abstract=abstract,
        dtypes=dtypes,
        vjp=None if vjp is None else (vjp,),
        domain=("real",),
        sample_attrs={"axis": (0,)},
        **rest,
    )
