"""First-order optimisers, with the formulas of their authors in torch's conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply, sqrt, square, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.inplace import assign
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import ParamGroup, check_at_least


def decayed(g: Tensor, p: Tensor, weight_decay: float) -> Tensor:
    """The gradient of the loss plus ``weight_decay / 2`` times the squared norm of ``p``."""
    return add(g, multiply(p, weight_decay)) if weight_decay else g


def averaged(average: Tensor, x: Tensor, keep: Any) -> Tensor:
    """``average`` moved to ``keep * average + (1 - keep) * x``, in place; the new value."""
    new = add(multiply(average, keep), multiply(x, 1.0 - keep))
    assign(average, new)
    return new


class SGD(Optimizer, recordable=True):
    """Gradient descent, with momentum: ``b = momentum * b + (1 - dampening) * g``; ``p -= lr * b``.

    The first ``b`` is ``g``. ``nesterov`` uses ``g + momentum * b`` in place of ``b`` (I. Sutskever et al., "On the
    importance of initialization and momentum in deep learning", ICML 2013, in torch's form).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, lr, implementation, **options, maximize=maximize)
        self._buffers = self.per_parameter("momentum") if self.any_group("momentum") else []
        self._count = self.step_count() if self._buffers and self.any_group("dampening") else None

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least("SGD", momentum=options["momentum"], weight_decay=options["weight_decay"])
        if options["nesterov"] and (not options["momentum"] or options["dampening"]):
            raise ArgumentError("SGD: nesterov=True needs a momentum and no dampening")

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """The learning rate, and the part of a gradient that goes into the momentum if that is not all of it."""
        if self._count is None:
            return (group.lr,)
        # advance() has counted this step
        return group.lr, where(equal(self._count, 1.0), 1.0, 1.0 - group.options["dampening"])

    def advance(self) -> None:
        """Count the step, which only dampening needs."""
        if self._count is not None:
            assign(self._count, add(self._count, 1.0))

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`SGD`."""
        lr, *part = common
        g, momentum = decayed(g, p, options["weight_decay"]), options["momentum"]
        if isinstance(momentum, Tensor) or momentum:
            b = add(multiply(self._buffers[k], momentum), multiply(g, part[0]) if part else g)
            assign(self._buffers[k], b)
            g = add(g, multiply(b, momentum)) if options["nesterov"] else b
        assign(p, subtract(p, multiply(g, lr)))


class RMSprop(Optimizer, recordable=True):
    """Gradients divided by their root mean square (T. Tieleman, G. Hinton, COURSERA lecture 6.5,
    2012); ``centered`` takes the variance instead (A. Graves, "Generating sequences with recurrent
    neural networks", 2013)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered}
        super().__init__(params, lr, implementation, **options, maximize=maximize)
        self._squares = self.per_parameter("square_avg")
        self._means = self.per_parameter("grad_avg") if self.any_group("centered") else []
        self._buffers = self.per_parameter("momentum") if self.any_group("momentum") else []

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least("RMSprop", **{name: options[name] for name in ("alpha", "eps", "weight_decay", "momentum")})

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`RMSprop`."""
        (lr,) = common
        g, alpha, momentum = decayed(g, p, options["weight_decay"]), options["alpha"], options["momentum"]
        v = averaged(self._squares[k], square(g), alpha)
        if options["centered"]:
            v = subtract(v, square(averaged(self._means[k], g, alpha)))
        direction = divide(g, add(sqrt(v), options["eps"]))
        if isinstance(momentum, Tensor) or momentum:
            direction = add(multiply(self._buffers[k], momentum), direction)
            assign(self._buffers[k], direction)
        assign(p, subtract(p, multiply(direction, lr)))


class Adagrad(Optimizer, recordable=True):
    """Gradients divided by the root of the sum of all their squares so far (J. Duchi, E. Hazan, Y.
    Singer, "Adaptive subgradient methods for online learning and stochastic optimization", JMLR
    2011)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        check_at_least("Adagrad", initial_accumulator_value=initial_accumulator_value)
        options = {"lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._count = self.step_count()
        self._sums = self.per_parameter("sum", initial_accumulator_value)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least("Adagrad", **{name: options[name] for name in ("lr_decay", "weight_decay", "eps")})

    def advance(self) -> None:
        """Count the step."""
        assign(self._count, add(self._count, 1.0))

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """The learning rate, decayed."""
        before = multiply(subtract(self._count, 1.0), group.options["lr_decay"])
        return (divide(group.lr, add(before, 1.0)),)

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Adagrad`."""
        (size,) = common
        g = decayed(g, p, options["weight_decay"])
        total = add(self._sums[k], square(g))
        assign(self._sums[k], total)
        assign(p, subtract(p, multiply(divide(g, add(sqrt(total), options["eps"])), size)))


class Adadelta(Optimizer, recordable=True):
    """Gradients times the ratio of the root mean squares of earlier steps and of gradients (M. D. Zeiler, "ADADELTA:
    an adaptive learning rate method", 2012)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._squares, self._steps = self.per_parameter("square_avg"), self.per_parameter("acc_delta")

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least("Adadelta", eps=options["eps"], weight_decay=options["weight_decay"])
        if not 0.0 <= options["rho"] <= 1.0:
            raise ArgumentError(f"Adadelta: rho must be in [0, 1], got {options['rho']}")

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Adadelta`."""
        (lr,) = common
        g, rho, eps = decayed(g, p, options["weight_decay"]), options["rho"], options["eps"]
        size = sqrt(add(averaged(self._squares[k], square(g), rho), eps))
        step = multiply(divide(sqrt(add(self._steps[k], eps)), size), g)
        averaged(self._steps[k], square(step), rho)
        assign(p, subtract(p, multiply(step, lr)))
