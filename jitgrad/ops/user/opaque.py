"""custom_op: opaque user-defined ops on NumPy arrays, with a gradient written in Tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op, aval_of
from jitgrad.core.errors import InPlaceError, OpDefinitionError, ReadOnlyError
from jitgrad.core.ir import exact
from jitgrad.core.op import Kind, OpDef, define, missing_vjp
from jitgrad.core.references import has_owners
from jitgrad.core.tensor import Tensor


class NoGradient:
    """Declares that a custom op has no gradient: ``jg.custom_op(..., vjp=jg.no_gradient)``."""

    def __repr__(self) -> str:
        return "jitgrad.no_gradient"


no_gradient: NoGradient = NoGradient()

UserVjp = Callable[..., Any] | NoGradient | None
AbstractRule = Callable[[Sequence[Aval], Mapping[str, Any]], Any]


class CustomOp:
    """An opaque op; positional arguments are operands, keywords are attributes."""

    def __init__(
        self, name: str, forward: Callable[..., Any], vjp: UserVjp, abstract: AbstractRule
    ) -> None:
        self.__name__ = name
        self.__doc__ = forward.__doc__
        self.single: OpDef = _define(name, forward, vjp, abstract, multiple=False)
        self.several: OpDef = _define(name, forward, vjp, abstract, multiple=True)

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """A Tensor, or a tuple of Tensors where ``forward`` returns a tuple."""
        avals = [aval_of(self.single, x) for x in operands]
        multiple = isinstance(self.single.abstract(avals, attrs), tuple)
        return apply_op(self.several if multiple else self.single, *operands, **attrs)

    def __repr__(self) -> str:
        return f"<custom op {self.__name__}>"


def custom_op(
    forward: Callable[..., Any] | None = None,
    *,
    vjp: UserVjp = None,
    abstract: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Make an op of ``forward``, which runs as a call of its own (it does not fuse); also a decorator.

    Args:
        forward: ``forward(*arrays, **attrs)`` on NumPy arrays; returns an array, or a tuple of arrays for several
            results. It gets arrays that are read-only, and its results' shapes may depend on shapes only. A result
            that something else holds or is a view of, such as an argument or a buffer, is copied.
        vjp: ``vjp(g, out, *operands, **attrs)`` on Tensors, written in ops: one gradient or None per operand. With
            several results ``g`` and ``out`` are tuples. A parameter whose name starts with an underscore is not read:
            nothing is kept in memory for it, and it has only ``.shape`` and ``.dtype``. Without a vjp, a gradient that
            reaches the op is an AutogradError; ``jg.no_gradient`` declares that operands get none.
        abstract: ``abstract(*avals, **attrs)`` -> the result's Aval or ``(shape, dtype)``, or a tuple of Avals. Without
            it, ``forward`` runs once on arrays of ones for every new combination of shapes, dtypes and attributes.

    Raises:
        OpDefinitionError: the signature of ``forward`` cannot be an op's.
        ReadOnlyError: by a call: ``forward`` changes an argument.
    """
    if forward is None:
        return lambda function: custom_op(function, vjp=vjp, abstract=abstract, name=name)
    named = str(name or getattr(forward, "__name__", ""))
    named = named if named.isidentifier() else "custom"
    return CustomOp(named, forward, vjp, _declared(named, abstract) if abstract else _by_example(named, forward))


def _declared(name: str, abstract: Callable[..., Any]) -> AbstractRule:
    def rule(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Any:
        result = abstract(*avals, **attrs)
        if isinstance(result, Aval):
            return result
        if isinstance(result, tuple) and result and all(isinstance(a, Aval) for a in result):
            return result
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], tuple):
            return Aval(result[0], np.dtype(result[1]))
        raise OpDefinitionError(
            f"{name}: abstract must return an Aval, (shape, dtype) or a tuple of Avals, not {result!r}"
        )

    return rule


def _by_example(name: str, forward: Callable[..., Any]) -> AbstractRule:
    """Shapes and dtypes of the results of ``forward`` on arrays of ones."""
    by_operands: dict[Any, Any] = {}

    def rule(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Any:
        key = (tuple(avals), tuple([(k, _attribute_key(attrs[k])) for k in sorted(attrs)]))
        if key not in by_operands:
            with np.errstate(all="ignore"):
                result = _call(name, forward, [np.ones(a.shape, a.dtype) for a in avals], attrs)
            arrays = [np.asarray(r) for r in result] if isinstance(result, tuple) else [np.asarray(result)]
            avals_of_results = tuple(Aval(r.shape, r.dtype.newbyteorder("=")) for r in arrays)
            by_operands[key] = avals_of_results if isinstance(result, tuple) else avals_of_results[0]
        return by_operands[key]

    return rule


def _attribute_key(value: Any) -> Any:
    """Equal only for attributes of which ``forward`` can make nothing different: texts may be equal, or shortened."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value), exact(value)


def _define(
    name: str, forward: Callable[..., Any], vjp: UserVjp, abstract: AbstractRule, *, multiple: bool
) -> OpDef:
    rule = None if isinstance(vjp, NoGradient) else missing_vjp if vjp is None else _of_user(name, vjp)
    return define(
        _signature(name, forward),
        kind=Kind.OPAQUE,
        eager=_on_arrays(name, forward),
        abstract=abstract,
        vjp=rule,
        multiple=multiple,
        register=False,
        takes_complex=True,
    )


def _of_user(name: str, vjp: Callable[..., Any]) -> Callable[..., Any]:
    """``vjp``, whose complex gradients are those that users see, with those of built-in vjps: their conjugates.

    It must not change the incoming gradient, which may be that of other tensors, too.
    """

    @wraps(vjp)  # whose parameters say what it reads
    def call(g: Any, *rest: Any, **attrs: Any) -> Any:
        given = [x for x in (g if isinstance(g, (tuple, list)) else (g,)) if isinstance(x, Tensor)]
        versions = [x._storage.version for x in given]
        grads = vjp(_conjugates(g), *rest, **attrs)
        for x, version in zip(given, versions, strict=True):
            if x._storage.version != version:
                raise InPlaceError(
                    f"custom op {name!r}: its vjp changes the incoming gradient {x.aval} in place, at "
                    f"{x._storage.changed_at.full()}; it may be that of other tensors, too. Compute another: "
                    "g = g * 2, not g *= 2"
                )
        return _conjugates(grads)

    return call


def _conjugates(g: Any) -> Any:
    if isinstance(g, (tuple, list)):
        return type(g)([_conjugates(x) for x in g])
    if isinstance(g, (Tensor, np.ndarray, np.generic)):
        return g.conj() if g.dtype.kind == "c" else g
    return g.conjugate() if isinstance(g, complex) else g


def _on_arrays(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """``forward`` on arrays only, Python numbers among the operands converted; each result has memory of its own."""

    def on_arrays(*operands: Any, **attrs: Any) -> Any:
        return _call(name, forward, operands, attrs)

    @wraps(on_arrays)  # which an ejected module calls: it shares no results
    def call(*operands: Any, **attrs: Any) -> Any:
        held = [on_arrays(*operands, **attrs)]
        if not isinstance(held[0], tuple):
            return _in_own_memory(held, 0)
        held = [*held.pop()]
        return tuple([_in_own_memory([held[k]], 1) for k in range(len(held))])

    return call


def _call(name: str, forward: Callable[..., Any], operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The result of ``forward``, which must not change what it gets: the arrays are the contents of tensors."""
    arrays = [np.asarray(x).view() for x in operands]
    for array in arrays:
        array.flags.writeable = False
    try:
        return forward(*arrays, **attrs)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ReadOnlyError(
            f"custom op {name!r}: its function changes an argument, or asks for an array that it could change "
            f"({type(error).__name__}: {error}). Its arguments are the contents of tensors: begin with x = x.copy()"
        ) from error


def _in_own_memory(held: list[Any], others: int) -> Any:
    """The result in the list ``held`` of one, which has ``others`` more owners; a copy if something else has its memory.

    ``forward`` may return an operand, a view of one, one array twice, or a buffer that it fills in every call.
    """
    if not isinstance(held[0], np.ndarray):
        return held[0]
    if not held[0].dtype.isnative:
        return held[0].astype(held[0].dtype.newbyteorder("="))
    if held[0].flags.writeable and has_owners(held, others) and _is_only_view(held):
        return held[0]
    return held[0].copy()


def _is_only_view(held: list[Any]) -> bool:
    """Whether the array in ``held`` owns its memory, or alone has the array that does."""
    if held[0].base is None:
        return True
    base = [held[0].base]
    return type(base[0]) is np.ndarray and base[0].base is None and has_owners(base, 1)


def _signature(name: str, forward: Callable[..., Any]) -> str:
    """``forward``'s parameters as a signature: operands are positional, attributes keywords."""
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):
        return f"{name}(*operands)"
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = [f"*{p.name}" for p in parameters if p.kind is p.VAR_POSITIONAL]
    if any(p.default is not p.empty for p in positional):  # each call decides how many operands it has
        positional, rest = [], ["*operands"]
    operands = [p.name for p in positional]
    attrs = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    star = ["*"] if attrs and not rest else []
    return f"{name}({', '.join([*operands, *rest, *star, *attrs])})"
