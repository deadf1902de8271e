"""L-BFGS: quasi-Newton steps from the last few changes of the gradient, with a line search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from jitgrad.autograd.modes import enable_grad, no_grad
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, TraceError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.inplace import assign
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import check_at_least

Vector = np.ndarray[Any, Any]
Point = tuple[float, Vector]  # a loss and its gradient


class LBFGS(Optimizer):
    """Limited-memory BFGS (J. Nocedal, S. J. Wright, "Numerical Optimization", 2nd ed. 2006,
    algorithm 7.4).

    ``step(closure)`` makes up to ``max_iter`` iterations; ``closure`` clears the gradients,
    computes the loss, calls ``backward`` and returns the loss. Eager only, since every iteration
    decides by values; the closure may be compiled.

    Args:
        line_search_fn: None takes steps of length ``lr``; "strong_wolfe" searches along each
            direction.
    """

    _unguarded: ClassVar[tuple[str, ...]] = (*Optimizer._unguarded, "_pairs", "_last")  # a compiled closure reads neither

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        super().__init__(params, lr)
        if len(self.param_groups) > 1:
            raise ArgumentError("LBFGS: one group of parameters is all it takes, since it searches along one direction")
        check_at_least("LBFGS", 1, max_iter=max_iter, history_size=history_size)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {shown(line_search_fn)}")
        self.max_iter: int = max_iter
        self.max_eval: int = max_eval or max_iter * 5 // 4
        self.tolerance_grad: float = tolerance_grad
        self.tolerance_change: float = tolerance_change
        self.history_size: int = history_size
        self.line_search_fn = line_search_fn
        # (change of position, change of gradient), oldest first
        self._pairs: list[tuple[Vector, Vector]] = []
        # the last change of position, and the gradient before it: what the gradient is after it, the next iteration sees
        self._last: tuple[Vector, Vector] | None = None

    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor:
        """Minimise; returns the loss before the first iteration.

        Raises:
            ArgumentError: there is no closure.
            TraceError: called inside a @jit function.
        """
        if closure is None:
            raise ArgumentError("LBFGS.step needs a closure that computes the loss and its gradients")
        if current_interpreter.get().tracing:
            raise TraceError(
                "LBFGS.step inside a @jit function: it decides by values, which a trace does not have. Call it "
                "outside, with a compiled function in the closure"
            )
        first, point = self._evaluate(closure)
        evaluations = 1
        for k in range(self.max_iter):
            loss, g = point
            if np.abs(g).max(initial=0.0) <= self.tolerance_grad:
                break
            start = self.lr if self._last else min(1.0, 1.0 / float(np.abs(g).sum())) * self.lr
            if self._last:
                self._remember(self._last[0], g - self._last[1])
            direction = self._direction(g)
            if float(direction @ g) > -self.tolerance_change:
                break
            length, reached, made = self._move_along(direction, start, point, closure, last=k == self.max_iter - 1)
            moved, evaluations = length * direction, evaluations + made
            self._last = moved, g
            if reached is None or evaluations >= self.max_eval:
                break
            point = reached
            if np.abs(moved).max() <= self.tolerance_change or abs(point[0] - loss) < self.tolerance_change:
                break
        return first

    def _move_along(
        self, direction: Vector, start: float, point: Point, closure: Callable[[], Tensor], last: bool
    ) -> tuple[float, Point | None, int]:
        """Change the parameters, from where the closure left them.

        Returns the length of the step in units of ``direction``, loss and gradient there, which the ``last`` iteration
        without a line search does not compute, and the number of evaluations.
        """
        origin = self._position()
        if not self.line_search_fn:
            self._move_to(origin + start * direction)
            return (start, None, 0) if last else (start, self._evaluate(closure)[1], 1)
        search = _Line(self, closure, origin, direction)
        length, reached = search.wolfe(point, start)
        self._move_to(origin + length * direction)
        return length, reached, search.evaluations

    def _direction(self, g: Vector) -> Vector:
        """Minus the estimated inverse Hessian times ``g`` (the two-loop recursion)."""
        q = g.copy()
        weights: list[tuple[float, float]] = []
        for s, y in reversed(self._pairs):
            rho = 1.0 / float(y @ s)
            alpha = rho * float(s @ q)
            weights.append((rho, alpha))
            q -= alpha * y
        if self._pairs:
            s, y = self._pairs[-1]
            q *= float(s @ y) / float(y @ y)
        for (s, y), (rho, alpha) in zip(self._pairs, reversed(weights), strict=True):
            q += (alpha - rho * float(y @ q)) * s
        return -q

    def _remember(self, s: Vector, y: Vector) -> None:
        """Keep a pair if it has positive curvature: the estimate stays positive definite."""
        if float(s @ y) > 1e-10 * float(y @ y):
            self._pairs = [*self._pairs, (s, y)][-self.history_size :]

    def _evaluate(self, closure: Callable[[], Tensor]) -> tuple[Tensor, Point]:
        with enable_grad():
            loss = closure()
        parts = []
        for p in self.params:
            g = p.grad
            parts.append(np.zeros(p.size) if g is None else g.concrete("LBFGS").ravel().astype(np.float64))
        return loss, (float(loss), np.concatenate(parts))

    def _position(self) -> Vector:
        return np.concatenate([p.concrete("LBFGS").ravel().astype(np.float64) for p in self.params])

    def _move_to(self, position: Vector) -> None:
        offset = 0
        with no_grad():
            for p in self.params:
                part = position[offset : offset + p.size].reshape(p.shape).astype(p.dtype)
                assign(p, Tensor(part))
                offset += p.size


class _Line:
    """The search along a direction for a point that meets the strong Wolfe conditions."""

    # c1 and c2, Nocedal & Wright's values for quasi-Newton directions
    SUFFICIENT, CURVATURE = 1e-4, 0.9
    ATTEMPTS = 25

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Tensor], origin: Vector, direction: Vector) -> None:
        self.optimizer, self.closure, self.origin, self.direction = optimizer, closure, origin, direction
        self.evaluations = 0

    def at(self, length: float) -> Point:
        """Loss and gradient at ``origin + length * direction``."""
        self.evaluations += 1
        self.optimizer._move_to(self.origin + length * self.direction)
        return self.optimizer._evaluate(self.closure)[1]

    def _rises(self, length: float, point: Point, start: Point, best: Point) -> bool:
        """Whether the loss did not decrease enough."""
        bound = start[0] + self.SUFFICIENT * length * float(start[1] @ self.direction)
        return not point[0] <= bound or point[0] >= best[0]

    def _is_flat(self, point: Point, start: Point) -> bool:
        slope = float(point[1] @ self.direction)
        return abs(slope) <= -self.CURVATURE * float(start[1] @ self.direction)

    def wolfe(self, start: Point, length: float) -> tuple[float, Point]:
        """Lengthen the step until it brackets an acceptable one (algorithm 3.5)."""
        low, low_point = 0.0, start
        for _ in range(self.ATTEMPTS):
            point = self.at(length)
            if self._rises(length, point, start, low_point if low else (np.inf, start[1])):
                return self._zoom(start, (low, low_point), (length, point))
            if self._is_flat(point, start):
                return length, point
            if float(point[1] @ self.direction) >= 0:
                return self._zoom(start, (length, point), (low, low_point))
            low, low_point = length, point
            length *= 2.0
        return low, low_point

    def _between(self, one: tuple[float, Point], other: tuple[float, Point]) -> float:
        """The least value of the cubic through two losses with their slopes (Nocedal & Wright, equation 3.59), at least a
        tenth of the bracket from its ends; its middle where there is none."""
        (a, (loss_a, g_a)), (b, (loss_b, g_b)) = one, other
        slope_a, slope_b = float(g_a @ self.direction), float(g_b @ self.direction)
        middle, width = 0.5 * (a + b), abs(b - a)
        with np.errstate(all="ignore"):
            d1 = slope_a + slope_b - 3.0 * (loss_a - loss_b) / (a - b)
            d2 = np.copysign(np.sqrt(d1 * d1 - slope_a * slope_b), b - a)
            least = float(b - (b - a) * (slope_b + d2 - d1) / (slope_b - slope_a + 2.0 * d2))
        if not np.isfinite(least):
            return middle
        return min(max(least, min(a, b) + 0.1 * width), max(a, b) - 0.1 * width)

    def _zoom(self, start: Point, low: tuple[float, Point], high: tuple[float, Point]) -> tuple[float, Point]:
        """Shrink the bracket until an acceptable step is found (algorithm 3.6); ``low`` has the
        least loss in it."""
        for _ in range(self.ATTEMPTS):
            length = self._between(low, high)
            point = self.at(length)
            if self._rises(length, point, start, low[1]):
                high = length, point
                continue
            if self._is_flat(point, start):
                return length, point
            if float(point[1] @ self.direction) * (high[0] - low[0]) >= 0:
                high = low
            low = length, point
        return low
