"""Adafactor and Muon: steps that take a parameter for a matrix, not for a list of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt as root_of
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, divide, maximum, minimum, multiply, rsqrt, sqrt, square, subtract
from jitgrad.ops.inplace import assign
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import matrix_transpose
from jitgrad.ops.reduce import mean
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.transcendental import pow as pow_
from jitgrad.optim.descent import averaged
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import ParamGroup, check_at_least

NewtonSchulz = tuple[float, float, float]
_ADJUSTMENTS = ("original", "match_rms_adamw")


def _row_shape(p: Tensor) -> Shape:
    return (*p.shape[:-1], 1) if p.ndim > 1 else (0,)


def _column_shape(p: Tensor) -> Shape:
    return (*p.shape[:-2], 1, p.shape[-1]) if p.ndim > 1 else (0,)


def _vector_shape(p: Tensor) -> Shape:
    return p.shape if p.ndim < 2 else (0,)


def _size(x: Tensor) -> Tensor:
    """The root of the mean square of all elements."""
    return sqrt(mean(square(x)))


class Adafactor(Optimizer, recordable=True):
    """Adam without a second moment per element: a matrix has one per row and one per column, whose product stands for them
    (N. Shazeer, M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018, in torch's form).

    Of ``eps``, the first bounds the roots of second moments from below (None: the spacing of numbers at 1), and the second
    the size of a parameter, to which its step is relative. ``d`` bounds the size of a step before that. Of parameters with
    more than two axes the last two are a matrix.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._count = self.step_count()
        self._rows = self.per_parameter("row_var", shape=_row_shape)
        self._columns = self.per_parameter("col_var", shape=_column_shape)
        self._vectors = self.per_parameter("variance", shape=_vector_shape)

    def check_options(self, options: Mapping[str, Any]) -> None:
        eps = options["eps"]
        if not isinstance(eps, Sequence) or len(eps) != 2:
            raise ArgumentError(f"Adafactor: eps must be two numbers, of which the first may be None, got {shown(eps)}")
        check_at_least("Adafactor", eps=eps[1], weight_decay=options["weight_decay"])
        check_at_least("Adafactor", eps=0.0 if eps[0] is None else eps[0])
        check_at_least("Adafactor", 1.0, d=options["d"])
        if not options["beta2_decay"] <= 0.0:
            raise ArgumentError(f"Adafactor: beta2_decay must be at most 0, got {options['beta2_decay']}")

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """The part of second moments that stays, the relative size of a step, and the factor of weight decay."""
        stays = subtract(1.0, pow_(self._count, group.options["beta2_decay"]))
        size = minimum(group.lr, divide(1.0, sqrt(self._count)))
        return stays, size, subtract(1.0, multiply(group.lr, group.options["weight_decay"]))

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Adafactor`."""
        stays, relative, decay = common
        eps, least_size = options["eps"]
        eps = float(np.finfo(p.dtype).eps) if eps is None else eps
        size = multiply(maximum(_size(p), least_size), relative)
        moment = self._second_moment(k, g, stays, eps)
        step = multiply(g, rsqrt(maximum(moment, eps * eps)))
        limit = maximum(divide(_size(step), options["d"]), 1.0)
        start = multiply(p, decay) if options["weight_decay"] else p
        assign(p, subtract(start, multiply(step, divide(size, limit))))

    def _second_moment(self, k: int, g: Tensor, stays: Tensor, eps: float) -> Tensor:
        squares = square(g)
        if g.ndim < 2:
            return averaged(self._vectors[k], squares, stays)
        rows = averaged(self._rows[k], mean(squares, axis=-1, keepdims=True), stays)
        columns = averaged(self._columns[k], mean(squares, axis=-2, keepdims=True), stays)
        return divide(multiply(rows, columns), maximum(mean(rows, axis=-2, keepdims=True), eps))


class Muon(Optimizer, recordable=True):
    """Momentum of which the singular values are made about 1: for the weight matrices of hidden layers (K. Jordan et al.,
    "Muon: an optimizer for hidden layers in neural networks", 2024).

    ``ns_steps`` times ``x = a x + (b x xᵀ + c (x xᵀ)²) x`` with ``ns_coefficients``, in the dtype of the parameter, where
    torch computes in bfloat16. ``adjust_lr_fn``: "original" multiplies the rate by the root of rows over columns where that
    is more than 1, "match_rms_adamw" by 0.2 times the root of the larger of the two (J. Liu et al., "Muon is scalable for
    LLM training", 2025). Other parameters than matrices, and embeddings, need another optimizer.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: NewtonSchulz = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **implementation: Any,
    ) -> None:
        options: dict[str, Any] = {"weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov}
        options |= {"eps": eps, "ns_coefficients": ns_coefficients, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, lr, implementation, **options)
        self._buffers = self.per_parameter("momentum_buffer")

    def _add(self, given: dict[str, Any]) -> ParamGroup:
        params = given["params"]
        given = given | {"params": [params] if isinstance(params, Tensor) else list(params)}
        for p in given["params"]:
            if isinstance(p, Tensor) and p.ndim != 2:
                raise ArgumentError(
                    f"Muon trains matrices, got a parameter {p.aval}: give vectors and others to AdamW, "
                    "[p for p in model.parameters() if p.ndim != 2]"
                )
        return super()._add(given)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least("Muon", **{name: options[name] for name in ("weight_decay", "momentum", "eps")})
        if options["adjust_lr_fn"] not in (None, *_ADJUSTMENTS):
            raise ArgumentError(
                f"Muon: adjust_lr_fn must be one of {', '.join(_ADJUSTMENTS)} or None, got {shown(options['adjust_lr_fn'])}"
            )
        coefficients, steps = options["ns_coefficients"], options["ns_steps"]
        if not isinstance(coefficients, Sequence) or len(coefficients) != 3:
            raise ArgumentError(f"Muon: ns_coefficients must be three numbers, got {shown(coefficients)}")
        if not isinstance(steps, int) or not 0 <= steps < 100:
            raise ArgumentError(f"Muon: ns_steps must be an int from 0 to 99, got {shown(steps)}")

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Muon`."""
        (lr,) = common
        momentum = options["momentum"]
        b = averaged(self._buffers[k], g, momentum)
        direction = add(multiply(g, subtract(1.0, momentum)), multiply(b, momentum)) if options["nesterov"] else b
        step = multiply(_orthogonalized(direction, options), _rate_factor(options["adjust_lr_fn"], p.shape))
        start = multiply(p, subtract(1.0, multiply(lr, options["weight_decay"]))) if options["weight_decay"] else p
        assign(p, subtract(start, multiply(step, lr)))


def _rate_factor(adjustment: str | None, shape: Shape) -> float:
    rows, columns = shape
    if adjustment == "match_rms_adamw":
        return 0.2 * root_of(max(rows, columns))
    return root_of(max(1.0, rows / columns)) if columns else 1.0


def _orthogonalized(direction: Tensor, options: Mapping[str, Any]) -> Tensor:
    """``direction`` with singular values near 1, of those that are not small beside its norm."""
    a, b, c = options["ns_coefficients"]
    tall = direction.shape[0] > direction.shape[1]
    # the squares of float16 would not reach below 1e-4
    x = astype(direction, np.float32) if direction.dtype == np.float16 else direction
    x = matrix_transpose(x) if tall else x
    x = divide(x, maximum(sqrt(sum_(square(x))), options["eps"]))
    for _ in range(options["ns_steps"]):
        gram = matmul(x, matrix_transpose(x))
        x = add(multiply(x, a), matmul(add(multiply(gram, b), multiply(matmul(gram, gram), c)), x))
    x = matrix_transpose(x) if tall else x
    return astype(x, direction.dtype) if direction.dtype == np.float16 else x
