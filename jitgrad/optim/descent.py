"""First-order optimisers, with the formulas of their authors in torch's conventions."""

from __future__ import annotations

from collections.abc import Iterable

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import transcendental
from jitgrad.ops.arithmetic import add, divide, multiply, sqrt, square, subtract
from jitgrad.ops.inplace import assign
from jitgrad.optim.optimizer import Optimizer, check_at_least


def _decayed(g: Tensor, p: Tensor, weight_decay: float) -> Tensor:
    """The gradient of the loss plus ``weight_decay / 2`` times the squared norm of ``p``."""
    return add(g, multiply(p, weight_decay)) if weight_decay else g


def _averaged(average: Tensor, x: Tensor, keep: float) -> Tensor:
    """``average`` moved to ``keep * average + (1 - keep) * x``, in place; the new value."""
    new = add(multiply(average, keep), multiply(x, 1.0 - keep))
    assign(average, new)
    return new


class SGD(Optimizer):
    """Gradient descent, with momentum: ``b = momentum * b + g``; ``p -= lr * b``.

    ``nesterov`` uses ``g + momentum * b`` in place of ``b`` (I. Sutskever et al., "On the
    importance of initialization and momentum in deep learning", ICML 2013, in torch's form).
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        check_at_least("SGD", momentum=momentum, weight_decay=weight_decay)
        if nesterov and not momentum:
            raise ArgumentError("SGD: nesterov=True needs a momentum")
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self._buffers = self.per_parameter("momentum") if momentum else []

    def update(self, k: int, p: Tensor, g: Tensor, *common: Tensor) -> None:
        (lr,) = common
        g = _decayed(g, p, self.weight_decay)
        if self._buffers:
            b = add(multiply(self._buffers[k], self.momentum), g)
            assign(self._buffers[k], b)
            g = add(g, multiply(b, self.momentum)) if self.nesterov else b
        assign(p, subtract(p, multiply(g, lr)))


class Adam(Optimizer):
    """Adaptive moments (D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR
    2015).

    All parameters share one step count. A parameter whose first gradients come late therefore
    starts with less bias correction than with a count of its own.
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr)
        check_at_least(type(self).__name__, eps=eps, weight_decay=weight_decay)
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ArgumentError(f"{type(self).__name__}: betas must be in [0, 1), got {betas}")
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self._count = self.step_count()
        self._first = self.per_parameter("exp_avg")
        self._second = self.per_parameter("exp_avg_sq")

    def prepare(self) -> tuple[Tensor, ...]:
        """Step size and root, corrected for averages that start at zero, and the decay factor."""
        count = add(self._count, 1.0)
        assign(self._count, count)
        # in float64: in float32, 1 - 0.999**count would have three digits
        size = divide(self._lr, subtract(1.0, transcendental.pow(self.betas[0], count)))
        root = sqrt(subtract(1.0, transcendental.pow(self.betas[1], count)))
        if not (self.decoupled and self.weight_decay):
            return size, root
        return size, root, subtract(1.0, multiply(self._lr, self.weight_decay))

    def update(self, k: int, p: Tensor, g: Tensor, *common: Tensor) -> None:
        size, root, *decay = common
        start = multiply(p, decay[0]) if decay else p
        if not self.decoupled:
            g = _decayed(g, p, self.weight_decay)
        m = _averaged(self._first[k], g, self.betas[0])
        v = _averaged(self._second[k], square(g), self.betas[1])
        scale = add(divide(sqrt(v), root), self.eps)
        assign(p, subtract(start, multiply(divide(m, scale), size)))


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (I. Loshchilov, F. Hutter, "Decoupled weight
    decay regularization", ICLR 2019)."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


class RMSprop(Optimizer):
    """Gradients divided by their root mean square (T. Tieleman, G. Hinton, COURSERA lecture 6.5,
    2012); ``centered`` takes the variance instead (A. Graves, "Generating sequences with recurrent
    neural networks", 2013)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        super().__init__(params, lr)
        check_at_least("RMSprop", alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        self.alpha, self.eps, self.weight_decay, self.momentum = alpha, eps, weight_decay, momentum
        self._squares = self.per_parameter("square_avg")
        self._means = self.per_parameter("grad_avg") if centered else []
        self._buffers = self.per_parameter("momentum") if momentum else []

    def update(self, k: int, p: Tensor, g: Tensor, *common: Tensor) -> None:
        (lr,) = common
        g = _decayed(g, p, self.weight_decay)
        v = _averaged(self._squares[k], square(g), self.alpha)
        if self._means:
            v = subtract(v, square(_averaged(self._means[k], g, self.alpha)))
        direction = divide(g, add(sqrt(v), self.eps))
        if self._buffers:
            direction = add(multiply(self._buffers[k], self.momentum), direction)
            assign(self._buffers[k], direction)
        assign(p, subtract(p, multiply(direction, lr)))


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares so far (J. Duchi, E. Hazan, Y.
    Singer, "Adaptive subgradient methods for online learning and stochastic optimization", JMLR
    2011)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        super().__init__(params, lr)
        check_at_least(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        self.lr_decay, self.weight_decay, self.eps = lr_decay, weight_decay, eps
        self._count = self.step_count()
        self._sums = self.per_parameter("sum", initial_accumulator_value)

    def prepare(self) -> tuple[Tensor, ...]:
        before = multiply(self._count, self.lr_decay)
        size = divide(self._lr, add(before, 1.0))
        assign(self._count, add(self._count, 1.0))
        return (size,)

    def update(self, k: int, p: Tensor, g: Tensor, *common: Tensor) -> None:
        (size,) = common
        g = _decayed(g, p, self.weight_decay)
        total = add(self._sums[k], square(g))
        assign(self._sums[k], total)
        assign(p, subtract(p, multiply(divide(g, add(sqrt(total), self.eps)), size)))
