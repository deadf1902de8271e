"""First-order optimisers, with the formulas of their authors in torch's conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, clip, divide, maximum, multiply, sign, sqrt, square, subtract
from jitgrad.ops.comparison import equal, greater, less, where
from jitgrad.ops.inplace import assign
from jitgrad.ops.transcendental import pow as pow_
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import ParamGroup, check_at_least, weak_scalar


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


class Rprop(Optimizer, recordable=True):
    """A step size per element, which grows while its gradient keeps its sign and shrinks where that changes: of gradients,
    only signs count (M. Riedmiller, H. Braun, "A direct adaptive method for faster backpropagation learning", 1993).

    ``etas``: the factors of shrinking and growing; ``step_sizes``: the least and the largest size. The first is ``lr``.
    Where the sign has changed there is no step, and the next one counts as the first.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        super().__init__(params, lr, implementation, etas=etas, step_sizes=step_sizes, maximize=maximize)
        self._before = self.per_parameter("prev")
        self._sizes = self.per_parameter("step_size")

    def check_options(self, options: Mapping[str, Any]) -> None:
        for name in ("etas", "step_sizes"):
            if not isinstance(options[name], Sequence) or len(options[name]) != 2:
                raise ArgumentError(f"Rprop: {name} must be two numbers, got {shown(options[name])}")
        (shrinking, growing), (least, largest) = options["etas"], options["step_sizes"]
        if not 0.0 < shrinking < 1.0 < growing:
            raise ArgumentError(f"Rprop: etas must be a number between 0 and 1 and one above 1, got {options['etas']}")
        if not 0.0 < least <= largest:  # a size of 0 marks one that has had no step yet
            raise ArgumentError(f"Rprop: step_sizes must be above 0 and in ascending order, got {options['step_sizes']}")

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Rprop`."""
        (lr,) = common
        (shrinking, growing), (least, largest) = options["etas"], options["step_sizes"]
        trend = multiply(g, self._before[k])
        factor = where(greater(trend, 0.0), growing, where(less(trend, 0.0), shrinking, 1.0))
        size = clip(multiply(where(equal(self._sizes[k], 0.0), lr, self._sizes[k]), factor), least, largest)
        kept = where(less(trend, 0.0), 0.0, g)
        assign(self._sizes[k], size)
        assign(self._before[k], kept)
        assign(p, subtract(p, multiply(sign(kept), size)))


class ASGD(Optimizer, recordable=True):
    """Gradient descent with falling rates, and the mean of all parameters after step ``t0`` (B. T. Polyak, A. B. Juditsky,
    "Acceleration of stochastic approximation by averaging", 1992; L. Bottou's rates, ``lr / (1 + lambd * lr * n)**alpha``).

    ``state_dict()`` has the means as ``ax.<index>``. A new ``lr`` counts from the second step after it on, as in torch.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._count = self.step_count()
        self._means = self.per_parameter("ax")
        for group in self.param_groups:
            self._start_rates(group)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least("ASGD", **{name: options[name] for name in ("lambd", "alpha", "t0", "weight_decay")})

    def _start_rates(self, group: ParamGroup) -> None:
        """Not in a step: within a compiled one the rate of the group is no number."""
        self._state[f"eta_{group.first}"] = weak_scalar(group["lr"])
        self._state[f"mu_{group.first}"] = weak_scalar(1.0)

    def _rates(self, group: ParamGroup) -> tuple[Tensor, Tensor]:
        """Of a group, named by its first parameter: the rate of the next step, and the part of the mean that it replaces."""
        rate, part = self._state[f"eta_{group.first}"], self._state[f"mu_{group.first}"]
        assert isinstance(rate, Tensor)
        assert isinstance(part, Tensor)
        return rate, part

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters: a dict with ``params`` and, for these, options of their own."""
        super().add_param_group(param_group)
        self._start_rates(self.param_groups[-1])

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """The rate of this step, and the part of the means that it replaces; those of the next step are put down."""
        rate, part = self._rates(group)
        common = multiply(rate, 1.0), multiply(part, 1.0)
        growth = add(multiply(multiply(self._count, group.lr), group.options["lambd"]), 1.0)
        assign(rate, divide(group.lr, pow_(growth, group.options["alpha"])))
        assign(part, divide(1.0, maximum(subtract(self._count, group.options["t0"]), 1.0)))
        return common

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`ASGD`."""
        rate, part = common
        g = decayed(g, p, options["weight_decay"])
        new = subtract(multiply(p, subtract(1.0, multiply(rate, options["lambd"]))), multiply(g, rate))
        mean = self._means[k]
        assign(mean, where(equal(part, 1.0), new, add(mean, multiply(subtract(new, mean), part))))
        assign(p, new)
