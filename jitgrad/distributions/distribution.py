"""The base class of distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.aval import Shape
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.distributions.constraints import Conditions, Constraint, positive, real
from jitgrad.ops.arithmetic import clip, sqrt
from jitgrad.ops.comparison import logical_and, where
from jitgrad.ops.creation import asarray
from jitgrad.ops.entropy import logit
from jitgrad.ops.movement import broadcast_to, expand_dims
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.transcendental import exp, sigmoid


def parameters(*operands: Operand) -> tuple[Tensor, ...]:
    """``operands``, of which some may be numbers, as tensors of their common shape.

    Numbers, whole ones too, get the dtype of a floating operand, or the default one. They are where
    the tensors are.
    """
    floats = [x.dtype for x in operands if isinstance(x, Tensor | np.ndarray) and x.dtype.kind == "f"]
    dtype = floats[0] if floats else get_default_dtype()
    with beside(*operands):
        from_numbers = [
            x if isinstance(x, Tensor) else asarray(x, dtype=dtype if isinstance(x, int | float) else None) for x in operands
        ]
    shape = np.broadcast_shapes(*[x.shape for x in from_numbers])
    return tuple([x if x.shape == shape else broadcast_to(x, shape) for x in from_numbers])


def floating(*operands: Operand) -> tuple[Tensor, ...]:
    """`parameters`, with whole numbers as floating ones, which a density of them needs."""
    return tuple([x if x.dtype.kind == "f" else x.float() for x in parameters(*operands)])


def one_of(what: str, probs: Any, logits: Any) -> tuple[Tensor | None, Tensor | None]:
    """``probs`` and ``logits`` as tensors. Raises ArgumentError unless one of them alone is given."""
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{what}: give probs or logits, and not both")
    return (None, asarray(logits)) if probs is None else (asarray(probs), None)


def logits_of(probs: Tensor) -> Tensor:
    """The logarithms of the odds of ``probs``, finite at 0 and 1."""
    least = float(np.finfo(probs.dtype).eps)
    return logit(clip(probs, least, 1.0 - least))


class Distribution:
    """A batch of distributions of ``batch_shape``, whose samples have ``event_shape`` after that.

    Parameters, and the values of `log_prob`, are checked unless ``validate_args=False``. A compiled
    function, which is traced without numbers, computes NaN of invalid ones.

    Args:
        given: the parameters by name; those that are None are computed from others.

    Raises:
        ArgumentError: a parameter does not satisfy its condition in ``arg_constraints``.
    """

    arg_constraints: ClassVar[Conditions] = {}
    has_rsample: ClassVar[bool] = False
    _validates: ClassVar[bool] = __debug__

    def __init__(
        self,
        batch_shape: Shape = (),
        event_shape: Shape = (),
        validate_args: bool | None = None,
        given: Mapping[str, Tensor | None] | None = None,
    ) -> None:
        self.batch_shape = batch_shape
        self.event_shape = event_shape
        self.validates: bool = self._validates if validate_args is None else bool(validate_args)
        self._given: Mapping[str, Tensor | None] = given or {}
        if self.validates and given and not current_interpreter.get().tracing:
            self._check_parameters(given)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments where they are not told."""
        Distribution._validates = value

    def _check_parameters(self, given: Mapping[str, Tensor | None]) -> None:
        for name, constraint in self.arg_constraints.items():
            parameter = given.get(name)
            if parameter is not None and not constraint.holds_for(parameter):
                raise ArgumentError(
                    f"{type(self).__name__}: the parameter {name}, {_shown(parameter)}, must be {constraint}; "
                    "validate_args=False leaves that out"
                )

    @property
    def gives_nan(self) -> bool:
        """Whether what is invalid must give NaN: in a trace, which has no numbers to check."""
        return self.validates and current_interpreter.get().tracing

    @property
    def support(self) -> Any:
        """The condition on values, or None if it is not known."""
        return None

    def checked(self, value: Operand) -> Tensor:
        """``value`` as a tensor, in a trace with NaN for what `valid` excludes.

        Raises ShapeError or ArgumentError, unless it can be a value of this distribution.
        """
        tensor = asarray(value)
        if not self.validates:
            return tensor
        own = (*self.batch_shape, *self.event_shape)
        if any(n != m and 1 not in (n, m) for n, m in zip(reversed(tensor.shape), reversed(own), strict=False)):
            raise ShapeError(f"{self!r}: a value of shape {tensor.shape} does not broadcast with its shape {own}")
        if current_interpreter.get().tracing:
            return self._with_nan(tensor)
        if (support := self.support) is not None and not support.holds_for(tensor):
            raise ArgumentError(
                f"{type(self).__name__}: the value {_shown(tensor)} must be {support}; validate_args=False leaves that out"
            )
        return tensor

    def _with_nan(self, value: Tensor) -> Tensor:
        valid = self.valid(value)
        if valid is None:
            return value
        return where(valid, value if value.dtype.kind == "f" else value.float(), math.nan)

    def valid(self, value: Tensor) -> Tensor | None:
        """Where ``value`` and the parameters satisfy their conditions; None if invalid ones give NaN anyway.

        Conditions on several elements of a parameter, such as that a matrix is positive definite, are left out.
        """
        pairs = [(c, self._given.get(name)) for name, c in self.arg_constraints.items() if not self.event_shape]
        held = [c.check(x) for c, x in pairs if x is not None and not (c is real or c.event_dim)]
        support = self.support
        if support is not None and support is not real and support.event_dim <= 1:
            inside = support.check(value)
            held.append(expand_dims(inside, -1) if support.event_dim else inside)
        return reduce(logical_and, held) if held else None

    @property
    def mean(self) -> Tensor:
        raise ArgumentError(f"{type(self).__name__} defines no mean")

    @property
    def variance(self) -> Tensor:
        raise ArgumentError(f"{type(self).__name__} defines no variance")

    @property
    def stddev(self) -> Tensor:
        return sqrt(self.variance)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of ``sample_shape`` before the shape of the distribution, through which gradients flow."""
        raise ArgumentError(f"{type(self).__name__}.rsample: no gradient flows through samples of it; use sample()")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """`rsample` without a history."""
        with no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Operand) -> Tensor:
        """The logarithm of the density, or of the probability, of ``value``."""
        raise ArgumentError(f"{type(self).__name__} defines no log_prob")

    def prob(self, value: Operand) -> Tensor:
        """The density or the probability of ``value``."""
        return exp(self.log_prob(value))

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise ArgumentError(f"{type(self).__name__} defines no entropy: estimate it, -p.log_prob(x).mean() of samples x")

    def perplexity(self) -> Tensor:
        """``exp`` of the entropy."""
        return exp(self.entropy())

    def expand(self, batch_shape: Any) -> Self:
        """This distribution, broadcast to ``batch_shape``. Raises ShapeError if its own does not broadcast to that."""
        wide, own = copy(self), len(self.batch_shape)
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and value.shape[:own] == self.batch_shape:
                setattr(wide, name, broadcast_to(value, (*batch_shape, *value.shape[own:])))
            elif isinstance(value, Distribution):
                setattr(wide, name, value.expand((*batch_shape, *value.batch_shape[own:])))
        wide.batch_shape = tuple(batch_shape)
        return wide

    def extended(self, sample_shape: Any) -> Shape:
        """The shape of samples of ``sample_shape``."""
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_shape={self.batch_shape}, event_shape={self.event_shape})"


class OfLocationAndScale(Distribution):
    """A distribution of all real numbers around ``loc``, its mean and its mode, stretched by ``scale``."""

    arg_constraints: ClassVar[Conditions] = {"loc": real, "scale": positive}
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        centre, width = parameters(loc, scale)
        self.loc: Tensor = centre
        self.scale: Tensor = width
        super().__init__(centre.shape, (), validate_args, {"loc": centre, "scale": width})

    @property
    def support(self) -> Constraint:
        return real

    def valid(self, value: Tensor) -> None:
        """None: a density has the logarithm of ``scale``."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class OfProbability(Distribution):
    """A distribution by ``probs``, or by their ``logits``, of which one is given."""

    def __init__(
        self,
        probs: Tensor | None,
        logits: Tensor | None,
        validate_args: bool | None,
        given: Mapping[str, Tensor | None] | None = None,
    ) -> None:
        self._probs = probs
        self._logits = logits
        either: Any = probs if probs is not None else logits
        super().__init__(either.shape, (), validate_args, {"probs": probs, "logits": logits, **(given or {})})

    @property
    def probs(self) -> Tensor:
        return sigmoid(self._logits) if self._probs is None else self._probs  # type: ignore[arg-type]

    @property
    def logits(self) -> Tensor:
        return logits_of(self.probs) if self._logits is None else self._logits


class OfTrials(OfProbability):
    """A distribution of trials with one probability, by ``total_count`` in its dtype as well."""

    def __init__(self, total_count: Operand, probs: Any, logits: Any, validate_args: bool | None) -> None:
        given, scores = one_of(type(self).__name__, probs, logits)
        chance: Any = given if given is not None else scores
        count, chance = parameters(total_count, chance)
        self.total_count: Tensor = count.astype(chance.dtype)
        given, scores = (None, chance) if given is None else (chance, None)
        super().__init__(given, scores, validate_args, {"total_count": self.total_count})


def _shown(tensor: Tensor) -> str:
    """``tensor`` in an error: its number or its type, with its least and its largest element."""
    array = np.asarray(tensor.detach().cpu())
    if array.size == 1:
        return str(array.item())
    return f"{tensor.aval} from {array.min()} to {array.max()}" if array.size else str(tensor.aval)
