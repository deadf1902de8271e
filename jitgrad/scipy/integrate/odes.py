"""odeint: an op that solves a differential equation, and whose gradient is the solution of another one, its adjoint.

The right-hand side is recorded once, as a graph of the state, the time, and all that it reads from outside, to which
gradients flow as well (L. S. Pontryagin and others, "The mathematical theory of optimal processes", 1962; R. T. Q. Chen and
others, "Neural ordinary differential equations", 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.flattening import flatten_params
from jitgrad.autograd.functional import vjp
from jitgrad.compiler.loops.body_trace import record_body
from jitgrad.compiler.loops.invariants import replayed
from jitgrad.core.aval import Aval, is_differentiable, strong_aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ShapeError
from jitgrad.core.ir import Graph, evaluate
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.run import run_on_arrays
from jitgrad.jit.decorator import jit
from jitgrad.numpy.arguments import floating, refuse
from jitgrad.ops import reduce
from jitgrad.ops.arithmetic import add, astype, multiply, negative
from jitgrad.ops.creation import zeros
from jitgrad.ops.joining import concat, stack
from jitgrad.ops.movement import cut, flatten, reshape
from jitgrad.scipy.integrate.dormand_prince import Accuracy, solution

Array = np.ndarray[Any, Any]


class Dynamics:
    """``dy/dt`` as a ``graph`` of the vector y, the time t, and constants.

    In a compiled function it is compiled, too; in eager execution, where each call of `odeint` has its own, its ops run
    one by one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        # dy/dt of the arrays y, t and constants
        self.on_arrays: Callable[..., Any] = self._compiled() if current_interpreter.get().tracing else self._by_ops
        self.avals: tuple[Aval, ...] = tuple([value.aval for value in graph.inputs[2:]])  # of the constants
        # those of them that have gradients
        self.varied: tuple[int, ...] = tuple([k for k, a in enumerate(self.avals) if is_differentiable(a.dtype)])

    def __repr__(self) -> str:
        return f"<{self.graph.name}: {len(self.graph.nodes)} ops>"

    def __call__(self, y: Any, t: Any, constants: Sequence[Any]) -> Any:
        """``dy/dt`` in ops."""
        return replayed(self.graph, (y, t, *constants))[0]

    def _by_ops(self, *arrays: Any) -> Any:
        return evaluate(self.graph, arrays, run_on_arrays)[0]

    def _compiled(self) -> Callable[..., Any]:
        of_tensors = jit(lambda y, t, *constants: self(y, t, constants))
        return lambda *arrays: of_tensors(*arrays).numpy()


def _recorded(name: str, function: Callable[..., Any], avals: Sequence[Aval]) -> tuple[Dynamics, tuple[Any, ...]]:
    """``function`` of tensors like ``avals`` as dynamics, and what it reads from outside, which are further constants."""
    recorded = record_body(name, lambda given: [function(*given)], [(aval, True) for aval in avals])
    return Dynamics(recorded.graph), recorded.constants


def _adjoint(dynamics: Dynamics) -> tuple[Dynamics, tuple[Any, ...]]:
    """Of the state (y, the gradient a of y, the gradients of the constants), backwards in time: with -t in place of t."""
    y, t = (value.aval for value in dynamics.graph.inputs[:2])
    n = y.shape[0]

    def slopes(state: Any, minus_t: Any, *constants: Any) -> Any:
        def forward(y: Any, *varied: Any) -> Any:
            given = dict(enumerate(constants)) | dict(zip(dynamics.varied, varied, strict=True))
            return dynamics(y, negative(minus_t), [*given.values()])

        slope, pull = vjp(forward, cut(state, 0, 0, n), *[constants[k] for k in dynamics.varied])
        flows = pull(cut(state, 0, n, 2 * n))
        return concat([negative(slope), *[astype(flatten(g), y.dtype, copy=False) for g in flows]])

    size = 2 * n + sum([math.prod(dynamics.avals[k].shape) for k in dynamics.varied])
    return _recorded(f"{dynamics.graph.name}_adjoint", slopes, [strong_aval((size,), y.dtype), t, *dynamics.avals])


def _solve(y: Array, times: Array, *constants: Array, dynamics: Dynamics, accuracy: Accuracy) -> Array:
    run = dynamics.on_arrays
    return solution(lambda y, t: np.array(run(y, np.asarray(t), *constants), y.dtype), y, times, accuracy)


def _solution_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    return strong_aval(avals[1].shape + avals[0].shape, avals[0].dtype)


def _vjp(
    g: Tensor, out: Tensor, y: Any, times: Any, *constants: Any, dynamics: Dynamics, accuracy: Accuracy
) -> list[Tensor | None]:
    """The gradients of ``y``, ``times`` and ``constants``: what later times ask of y is carried back to the first one."""
    steps, n = out.shape
    backward, further = _adjoint(dynamics)
    slopes = [dynamics(out[k], times[k], constants) for k in range(steps)]
    of_times = [reduce.sum(multiply(g[k], slopes[k])) for k in range(steps)]
    a = zeros((n,), dtype=out.dtype)
    sums = zeros((backward.graph.inputs[0].aval.shape[0] - 2 * n,), dtype=out.dtype)
    for k in range(steps - 1, 0, -1):
        span = negative(stack([times[k], times[k - 1]]))
        state = concat([out[k], add(a, g[k]), sums])
        last = apply_op(ODE, state, span, *constants, *further, dynamics=backward, accuracy=accuracy)[1]
        a, sums = cut(last, 0, n, 2 * n), cut(last, 0, 2 * n, last.shape[0])
    of_times[:1] = [negative(reduce.sum(multiply(a, slope))) for slope in slopes[:1]]
    grads: list[Tensor | None] = [None] * len(constants)
    start = 0
    for k in dynamics.varied:
        aval = dynamics.avals[k]
        part = cut(sums, 0, start, start := start + math.prod(aval.shape))
        grads[k] = astype(reshape(part, aval.shape), aval.dtype, copy=False)
    return [add(a, g[0]) if steps else a, astype(stack(of_times), times.dtype) if steps else None, *grads]


ODE: OpDef = define(
    "ode(y, times, *constants, dynamics, accuracy)",
    kind=Kind.OPAQUE,
    eager=_solve,
    abstract=_solution_aval,
    vjp=_vjp,
    partial_vjp=True,
    register=False,
)


def solved(
    slope: Callable[[Any, Any], Any], state: Any, times: Any, accuracy: Accuracy
) -> tuple[Tensor, Callable[[Any], Any]]:
    """The solution of ``slope(state, t)`` from the pytree ``state``, a vector at each of ``times``; and its way to pytrees.

    Raises:
        ShapeError, DtypeError: what ``slope`` gives is not like ``state``; ``times`` are no vector.
        TracedValueError: ``slope`` decides by values. ArgumentError: the solution takes too many steps.
    """
    moments = floating(times)
    if moments.ndim != 1:
        raise ShapeError(f"odeint: the times must be a vector, got {moments.aval}")
    y, unflatten = flatten_params(state)

    def vector(y: Any, t: Any) -> Any:
        dy = flatten_params(slope(unflatten(y), t))[0]
        if dy.shape != y.shape:
            raise ShapeError(f"odeint: the function returns {dy.shape[0]} elements for a state of {y.shape[0]}")
        return astype(dy, y.dtype, copy=False)

    avals = [strong_aval(y.shape, y.dtype), strong_aval((), moments.dtype)]
    dynamics, constants = _recorded("ode", vector, avals)
    return apply_op(ODE, y, moments, *constants, dynamics=dynamics, accuracy=accuracy), unflatten


def odeint(
    func: Callable[..., Any], y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = None, full_output: Any = None,
    ml: Any = None, mu: Any = None, rtol: float | None = None, atol: float | None = None, tcrit: Any = None, h0: Any = None,
    hmax: float = 0.0, hmin: Any = None, ixpr: Any = None, mxstep: int = 0, mxhnil: Any = None, mxordn: Any = None,
    mxords: Any = None, printmessg: Any = None, tfirst: bool = False,
) -> Tensor:  # fmt: skip
    """The solution of ``dy/dt = func(y, t, *args)``, which is ``y0`` at ``t[0]``, at each of ``t``: a row for each.

    Gradients flow to ``y0``, ``t``, ``args`` and all else that ``func`` reads. Steps are explicit (Dormand and Prince, with
    errors below ``atol + rtol * |y|``, 1.49e-8 each by default), at most ``mxstep`` between two times if it is not 0; a
    stiff equation takes many. ``tfirst``: ``func(t, y, *args)``. SciPy's other options are refused.

    Raises:
        ArgumentError: an option of SciPy's that has no meaning here; or too many steps.
        ShapeError: ``y0`` or ``t`` is no vector, or ``func`` returns another shape.
        TracedValueError: ``func`` decides by values.
    """
    refuse(
        "odeint", Dfun=Dfun, col_deriv=col_deriv, full_output=full_output, ml=ml, mu=mu, tcrit=tcrit, h0=h0, hmin=hmin, ixpr=ixpr,
        mxhnil=mxhnil, mxordn=mxordn, mxords=mxords, printmessg=printmessg,
    )  # fmt: skip
    start = floating(y0)
    if start.ndim > 1:
        raise ShapeError(f"odeint: y0 must be a vector, got {start.aval}; reshape it, and within func back")
    given = args if isinstance(args, tuple) else (args,)

    def slope(y: Any, t: Any) -> Any:
        return reshape(floating(func(t, y, *given) if tfirst else func(y, t, *given)), (-1,))

    default = 1.49012e-8
    accuracy = Accuracy(
        default if rtol is None else rtol, default if atol is None else atol, mxstep or math.inf, hmax or math.inf
    )
    return solved(slope, reshape(start, (-1,)), t, accuracy)[0]
