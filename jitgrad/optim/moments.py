"""Adam and its kin: steps from running means of gradients and of their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops import arithmetic
from jitgrad.ops.arithmetic import add, divide, maximum, multiply, sqrt, square, subtract
from jitgrad.ops.comparison import greater, where
from jitgrad.ops.inplace import assign
from jitgrad.ops.transcendental import pow as pow_
from jitgrad.optim.descent import averaged, decayed
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.param_group import ParamGroup, check_at_least, weak_scalar

Betas = tuple[float, float]


class _Moments(Optimizer):
    """Base class: two running means per parameter, and a count of steps.

    All parameters share one step count. A parameter whose first gradients come late therefore
    starts with less bias correction than with a count of its own.
    """

    second = "exp_avg_sq"

    def _set_up(self) -> None:
        self._count = self.step_count()
        self._first = self.per_parameter("exp_avg")
        self._second = self.per_parameter(self.second)

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_at_least(type(self).__name__, eps=options["eps"], weight_decay=options["weight_decay"])
        betas = options["betas"]
        if not isinstance(betas, Sequence) or len(betas) != 2 or not all(0.0 <= beta < 1.0 for beta in betas):
            raise ArgumentError(f"{type(self).__name__}: betas must be two numbers in [0, 1), got {shown(betas)}")

    def _correction(self, beta: Any) -> Tensor:
        """``1 - beta**count``, for a mean that started at zero."""
        # in float64: in float32, 1 - 0.999**count would have three digits
        return subtract(1.0, pow_(beta, self._count))

    def _shrunk(self, p: Tensor, options: Mapping[str, Any], lr: Tensor) -> Tensor:
        """``p`` with decoupled weight decay."""
        return multiply(p, subtract(1.0, multiply(lr, options["weight_decay"]))) if options["weight_decay"] else p


def first_beta(options: Mapping[str, Any]) -> Any:
    """The factor of the running mean of gradients, which a schedule may have made a tensor."""
    cycled = options.get("beta1")
    return options["betas"][0] if cycled is None else cycled


class Adam(_Moments, recordable=True):
    """Adaptive moments (D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR
    2015); ``amsgrad`` divides by the largest second moment so far (S. J. Reddi et al., ICLR 2018)."""

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._set_up()
        self._largest = self.per_parameter("max_exp_avg_sq") if self.any_group("amsgrad") else []

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """Step size and root, corrected for averages that start at zero, and the decay factor."""
        size = divide(group.lr, self._correction(first_beta(group.options)))
        root = sqrt(self._correction(group.options["betas"][1]))
        if not (self.decoupled and group.options["weight_decay"]):
            return size, root
        return size, root, subtract(1.0, multiply(group.lr, group.options["weight_decay"]))

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Adam`."""
        size, root, *decay = common
        start = multiply(p, decay[0]) if decay else p
        if not self.decoupled:
            g = decayed(g, p, options["weight_decay"])
        m = averaged(self._first[k], g, first_beta(options))
        v = averaged(self._second[k], square(g), options["betas"][1])
        if options["amsgrad"]:
            v = maximum(self._largest[k], v)
            assign(self._largest[k], v)
        scale = add(divide(sqrt(v), root), options["eps"])
        assign(p, subtract(start, multiply(divide(m, scale), size)))


class AdamW(Adam, recordable=True):
    """Adam with weight decay apart from the gradient (I. Loshchilov, F. Hutter, "Decoupled weight
    decay regularization", ICLR 2019)."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **implementation)


class Adamax(_Moments, recordable=True):
    """Adam with the largest size of gradients, fading, in place of the second moment (in the paper of Adam)."""

    second = "exp_inf"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._set_up()

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """The step size, corrected for an average that starts at zero."""
        return (divide(group.lr, self._correction(first_beta(group.options))),)

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`Adamax`."""
        (size,) = common
        g = decayed(g, p, options["weight_decay"])
        m = averaged(self._first[k], g, first_beta(options))
        largest = maximum(multiply(self._second[k], options["betas"][1]), add(arithmetic.abs(g), options["eps"]))
        assign(self._second[k], largest)
        assign(p, subtract(p, multiply(divide(m, largest), size)))


class NAdam(_Moments, recordable=True):
    """Adam with Nesterov momentum (T. Dozat, "Incorporating Nesterov momentum into Adam", 2016)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay}
        options |= {"decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}
        super().__init__(params, lr, implementation, **options)
        self._set_up()
        for group in self.param_groups:
            self._product(group)

    def _product(self, group: ParamGroup) -> Tensor:
        """The product of all momenta so far of a group, named by its first parameter."""
        held = self._state.setdefault(f"mu_product_{group.first}", weak_scalar(1.0))
        assert isinstance(held, Tensor)
        return held

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters: a dict with ``params`` and, for these, options of their own."""
        super().add_param_group(param_group)
        self._product(self.param_groups[-1])

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """Step sizes along the gradient and its mean, the root, and the learning rate."""
        lr, beta = group.lr, first_beta(group.options)
        now, then = (
            multiply(subtract(1.0, multiply(pow_(0.96, multiply(count, group.options["momentum_decay"])), 0.5)), beta)
            for count in (self._count, add(self._count, 1.0))
        )
        held = self._product(group)
        product = multiply(held, now)
        assign(held, product)
        along_gradient = divide(multiply(lr, subtract(1.0, now)), subtract(1.0, product))
        along_mean = divide(multiply(lr, then), subtract(1.0, multiply(product, then)))
        return along_gradient, along_mean, self._correction(group.options["betas"][1]), lr

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`NAdam`."""
        along_gradient, along_mean, correction, lr = common
        decoupled = options["decoupled_weight_decay"]
        start = self._shrunk(p, options, lr) if decoupled else p
        g = g if decoupled else decayed(g, p, options["weight_decay"])
        m = averaged(self._first[k], g, first_beta(options))
        v = averaged(self._second[k], square(g), options["betas"][1])
        scale = add(sqrt(divide(v, correction)), options["eps"])
        step = add(multiply(divide(g, scale), along_gradient), multiply(divide(m, scale), along_mean))
        assign(p, subtract(start, step))


class RAdam(_Moments, recordable=True):
    """Adam that divides by second moments only once their estimate is reliable (L. Liu et al., "On the variance of the
    adaptive learning rate and beyond", ICLR 2020)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Any,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, lr, implementation, **options, decoupled_weight_decay=decoupled_weight_decay)
        self._set_up()

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """The step size, the rectified factor, whether that counts, and the learning rate."""
        second = group.options["betas"][1]
        size = divide(group.lr, self._correction(first_beta(group.options)))
        correction = self._correction(second)
        limit = 2.0 / (1.0 - second) - 1.0
        fading = divide(multiply(multiply(self._count, 2.0), pow_(second, self._count)), correction)
        length = subtract(limit, fading)  # of the equivalent simple average
        reliable = greater(length, 5.0)
        known = where(reliable, length, 6.0)
        ratio = divide(multiply(subtract(known, 4.0), subtract(known, 2.0)), known)
        rectified = sqrt(multiply(multiply(ratio, limit / ((limit - 4.0) * (limit - 2.0))), correction))
        return size, rectified, reliable, group.lr

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """See :class:`RAdam`."""
        size, rectified, reliable, lr = common
        decoupled = options["decoupled_weight_decay"]
        start = self._shrunk(p, options, lr) if decoupled else p
        g = g if decoupled else decayed(g, p, options["weight_decay"])
        m = averaged(self._first[k], g, first_beta(options))
        v = averaged(self._second[k], square(g), options["betas"][1])
        factor = where(reliable, divide(rectified, add(sqrt(v), options["eps"])), 1.0)
        assign(p, subtract(start, multiply(multiply(m, size), factor)))
