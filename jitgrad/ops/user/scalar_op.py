"""@elementwise: user-defined scalar functions as ops that fuse like built-in ones."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, float_dtype
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, OpDefinitionError
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.user.loop_gradient import LoopFunction
from jitgrad.ops.user.scalar_gradient import derivative
from jitgrad.ops.user.scalar_numpy import numpy_expression
from jitgrad.ops.user.scalar_source import NotAnExpression, body_of, canonical, is_boolean

_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class UserOp:
    """A user-defined op, called with operands; ``.op`` is its record for :func:`apply_op`."""

    op: OpDef
    signature: inspect.Signature = field(repr=False)
    __doc__: str | None = field(default=None, repr=False)

    @property
    def __name__(self) -> str:
        return self.op.name

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.op.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        return apply_op(self.op, *bound.args, **bound.kwargs)  # type: ignore[no-any-return]


def elementwise(definition: Any = None, *, scalar: str | None = None, vjp: Callable[..., Any] | None = None) -> Any:
    """Define an elementwise op from scalar Python; it broadcasts, fuses and compiles like a built-in one.

    Two forms::

        @jg.elementwise
        def softclip(x, limit=3.0):  # parameters are operands: tensors or numbers; after * they are constants
            if abs(x) < limit:
                return x
            return math.copysign(limit + math.log(abs(x) / limit), x)

        leaky = jg.elementwise("leaky(x, *, slope)", scalar="x if x > 0 else slope * x")

    The function may have local variables and branches; then it is one expression, whose derivative (of every order) is
    derived if ``vjp`` is omitted. Both branches are computed and one is selected, so the other one raises nothing (log
    of 0). Functions with ``while`` and ``for`` over a range run per element; their derivatives (of every order) carry
    tangents through the loop. Integers are computed as floats.

    Args:
        vjp: ``vjp(g, out, *operands, **attrs)`` on Tensors, one gradient or None per operand.

    Raises:
        OpDefinitionError: a name from outside the function, an unknown function, or no readable source.
    """
    if definition is None:
        return lambda function: elementwise(function, scalar=scalar, vjp=vjp)
    if isinstance(definition, str):
        if scalar is None:
            raise OpDefinitionError(f"elementwise({definition!r}): pass scalar='an expression of the parameters'")
        return _from_text(definition, scalar, vjp)
    if scalar is not None or not callable(definition):
        raise OpDefinitionError("elementwise takes a function, or a signature such as 'name(x, y)' and scalar='...'")
    return _from_function(definition, vjp)


def _from_text(definition: str, scalar: str, vjp: Callable[..., Any] | None) -> UserOp:
    try:
        function = ast.parse(f"def {definition}: pass").body[0]
        tree = ast.parse(scalar.strip(), mode="eval").body
        assert isinstance(function, ast.FunctionDef)
        arguments = function.args
        values = [ast.literal_eval(d) for d in arguments.defaults]
        keyword_values = [_EMPTY if d is None else ast.literal_eval(d) for d in arguments.kw_defaults]
    except (SyntaxError, ValueError, AssertionError) as error:
        raise OpDefinitionError(f"elementwise({definition!r}, scalar={scalar!r}): {error}") from None
    defaults = [_EMPTY] * (len(arguments.args) - len(values)) + values
    parameters = [
        inspect.Parameter(a.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d)
        for a, d in zip(arguments.args, defaults, strict=True)
    ]
    parameters += [
        inspect.Parameter(a.arg, inspect.Parameter.KEYWORD_ONLY, default=d)
        for a, d in zip(arguments.kwonlyargs, keyword_values, strict=True)
    ]
    if arguments.vararg or arguments.kwarg:
        raise OpDefinitionError(f"elementwise({definition!r}): * and ** parameters are not possible")
    return UserOp(_expression_op(function.name, tree, parameters, vjp), inspect.Signature(parameters))


def _from_function(function: Callable[..., Any], vjp: Callable[..., Any] | None) -> UserOp:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    name = function.__name__ if function.__name__.isidentifier() else "user_function"
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise OpDefinitionError(f"elementwise({name}): * and ** parameters are not possible")
    signature = signature.replace(
        parameters=[p.replace(annotation=_EMPTY) for p in parameters], return_annotation=_EMPTY
    )
    try:
        op = _expression_op(name, body_of(function), parameters, vjp)
    except NotAnExpression:
        op = _function_op(name, function, parameters, vjp, lambda: LoopFunction.read(function, name))
    return UserOp(op, signature, function.__doc__)


def _split(parameters: Sequence[inspect.Parameter]) -> tuple[list[str], list[str]]:
    operands = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    return operands, [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def _text(name: str, operands: Sequence[str], attrs: Sequence[str]) -> str:
    return f"{name}({', '.join([*operands, *(['*', *attrs] if attrs else [])])})"


def _expression_op(
    name: str, tree: ast.expr, parameters: Sequence[inspect.Parameter], vjp: Callable[..., Any] | None
) -> OpDef:
    """The op whose kernel, NumPy and gradient meanings all come from ``tree``."""
    operands, attrs = _split(parameters)
    what = f"elementwise({name})"
    if not operands:
        raise OpDefinitionError(f"{what}: it needs at least one operand before *")
    tree = canonical(what, tree, [*operands, *attrs])
    boolean = is_boolean(tree)
    return define_elementwise(
        _text(name, operands, attrs),
        scalar=ast.unparse(tree),
        eager=numpy_expression(what, tree, operands, attrs),
        dtypes=_float_to_bool if boolean else float_dtype,
        vjp=vjp or (None if boolean else _derived_vjps(name, tree, tuple(operands), tuple(attrs))),
        register=False,
    )


def _float_to_bool(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    return float_dtype(avals)[0], np.dtype(np.bool_)


def _derived_vjps(
    name: str, tree: ast.expr, operands: tuple[str, ...], attrs: tuple[str, ...]
) -> tuple[Callable[..., Any], ...]:
    """One vjp per operand, an op with the derived expression, made at its first use."""

    @cache
    def gradient_op(operand: str) -> OpDef:
        what = f"elementwise({name})"
        g = next(
            n for n in ("g", *(f"g{k}" for k in range(len(operands) + len(attrs) + 1))) if n not in operands + attrs
        )
        names = [g, *operands, *attrs]
        slope = canonical(what, derivative(what, tree, operand, g), names)
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in (g, *operands)]
        parameters += [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in attrs]
        return _expression_op(f"{name}_d{operand}", slope, parameters, None)

    def vjp_of(operand: str) -> Callable[..., Any]:
        return lambda g, _out, *operands, **attributes: apply_op(gradient_op(operand), g, *operands, **attributes)

    return tuple(map(vjp_of, operands))


@dataclass(frozen=True, slots=True)
class _PerElement:
    """The NumPy meaning of a scalar function with loops: called once per element."""

    function: Callable[..., Any]

    def __call__(self, *arrays: Any) -> Any:
        return np.vectorize(self.function, otypes=[arrays[0].dtype])(*arrays)


def _function_op(
    name: str,
    function: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
    vjp: Callable[..., Any] | None,
    read: Callable[[], LoopFunction],
) -> OpDef:
    """The op that calls ``function`` for each element; its gradient is derived from the statements that ``read`` gives."""
    operands, attrs = _split(parameters)
    if attrs or not operands:
        raise OpDefinitionError(
            f"elementwise({name}): a function with loops takes its numbers {attrs} as ordinary parameters, not after *"
        )

    @cache
    def slope(k: int) -> OpDef:
        of_operand = read().derivative(operands[k])
        return _function_op(of_operand.name, of_operand.compile(), parameters, None, lambda: of_operand)

    def vjp_of(k: int) -> Callable[..., Any]:
        return lambda g, _out, *xs: multiply(g, apply_op(slope(k), *xs))

    return define_elementwise(
        _text(name, operands, ()),
        scalar=None,
        function=function,
        eager=_PerElement(function),
        dtypes=float_dtype,
        vjp=vjp or tuple(map(vjp_of, range(len(operands)))),
        register=False,
    )
