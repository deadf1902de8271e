"""`Distribution`: densities and distribution functions with SciPy's signatures, from standard ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply, subtract
from jitgrad.ops.comparison import equal, isnan, logical_and, where
from jitgrad.ops.operand import Operand, is_number
from jitgrad.ops.rounding import floor
from jitgrad.ops.transcendental import exp, log

Function = Callable[..., Any]
INFINITY, NAN = float("inf"), float("nan")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The arguments of a call: shapes, location and scale."""

    shapes: tuple[Any, ...]
    loc: Any
    scale: Any

    def standard(self, x: Any) -> Any:
        """``(x - loc) / scale``."""
        moved = x if is_number(self.loc) and self.loc == 0 else subtract(x, self.loc)
        return moved if self.has_unit_scale else divide(moved, self.scale)

    @property
    def has_unit_scale(self) -> bool:
        return is_number(self.scale) and bool(self.scale == 1)


@dataclass(frozen=True, slots=True)
class Distribution:
    """A family of distributions: functions of a standardised ``z`` and the shape parameters.

    ``inside(z, *shapes)`` says where the density is positive, ``valid(*shapes)`` which shapes exist;
    ``centre`` is a point inside for all of them: what is outside is computed there instead, so that
    gradients stay finite. Functions that are None need one that jitgrad does not have.
    """

    name: str
    log_density: Function
    shapes: tuple[str, ...] = ()
    inside: Function | None = None
    valid: Function | None = None
    centre: float = 0.5
    discrete: bool = False
    distribution: Function | None = None
    log_distribution: Function | None = None
    survival: Function | None = None
    log_survival: Function | None = None
    quantile: Function | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these parameters."""
        self._parameters("", args, kwargs)
        return Frozen(self, args, kwargs)

    def _parameters(self, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Parameters:
        names = (*self.shapes, "loc") if self.discrete else (*self.shapes, "loc", "scale")
        given = dict(zip(names, args, strict=False)) | dict(kwargs)
        call = f"{self.name}.{method}".rstrip(".")
        if len(args) > len(names) or set(kwargs) - set(names) or len(given) < len(args) + len(kwargs):
            raise ArgumentError(
                f"{call}: takes the parameters {', '.join(names)}; got {len(args)} by position and {sorted(kwargs)} by name"
            )
        if missing := [name for name in self.shapes if name not in given]:
            raise ArgumentError(f"{call}: the parameter {missing[0]} is missing; it takes {', '.join(names)}")
        return Parameters(tuple(given[name] for name in self.shapes), given.get("loc", 0), given.get("scale", 1))

    def _checked(self, value: Tensor, shapes: tuple[Any, ...]) -> Tensor:
        return value if self.valid is None else where(self.valid(*shapes), value, NAN)

    def _log_density(self, method: str, x: Operand, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
        p = self._parameters(method, args, kwargs)
        z = p.standard(x)
        inside = None if self.inside is None else self.inside(z, *p.shapes)
        if self.discrete:
            whole = equal(z, floor(z))
            inside = whole if inside is None else logical_and(inside, whole)
        value = self.log_density(z if inside is None else where(inside, z, self.centre), *p.shapes)
        if inside is not None:
            value = where(isnan(z), NAN, where(inside, value, -INFINITY))
        if not p.has_unit_scale:
            value = subtract(value, log(p.scale))
        return self._checked(value, p.shapes)

    def logpdf(self, x: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density at ``x``; -inf outside of the support."""
        self._require("logpmf" if self.discrete else None, "logpdf")
        return self._log_density("logpdf", x, args, kwargs)

    def pdf(self, x: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The density at ``x``."""
        self._require("pmf" if self.discrete else None, "pdf")
        return exp(self._log_density("pdf", x, args, kwargs))

    def logpmf(self, k: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability of ``k``; -inf where that is 0."""
        self._require(None if self.discrete else "logpdf", "logpmf")
        return self._log_density("logpmf", k, args, kwargs)

    def pmf(self, k: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of ``k``."""
        self._require(None if self.discrete else "pdf", "pmf")
        return exp(self._log_density("pmf", k, args, kwargs))

    def _require(self, instead: str | None, method: str) -> None:
        if instead is not None:
            raise AttributeError(f"jitgrad.scipy.stats.{self.name} has no {method!r}; use {instead}", name=method)

    def _function(self, method: str, function: Function | None) -> Function:
        if function is None:
            raise AttributeError(
                f"jitgrad.scipy.stats.{self.name} has no {method!r}: it needs a special function that jitgrad has not. "
                f"Make it an op: jg.custom_op(forward=scipy.stats.{self.name}.{method}, vjp=...)",
                name=method,
            )
        return function

    def _of_standard(self, method: str, function: Function | None, x: Operand, args: Any, kwargs: Any) -> Tensor:
        p = self._parameters(method, args, kwargs)
        return self._checked(self._function(method, function)(p.standard(x), *p.shapes), p.shapes)

    def cdf(self, x: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of at most ``x``."""
        return self._of_standard("cdf", self.distribution, x, args, kwargs)

    def logcdf(self, x: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of `cdf`."""
        return self._of_standard("logcdf", self.log_distribution, x, args, kwargs)

    def sf(self, x: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of more than ``x``."""
        return self._of_standard("sf", self.survival, x, args, kwargs)

    def logsf(self, x: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of `sf`."""
        return self._of_standard("logsf", self.log_survival, x, args, kwargs)

    def ppf(self, q: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The quantile: the inverse of `cdf`."""
        p = self._parameters("ppf", args, kwargs)
        value = self._function("ppf", self.quantile)(q, *p.shapes)
        return self._checked(add(multiply(value, p.scale), p.loc), p.shapes)

    def isf(self, q: Operand, *args: Any, **kwargs: Any) -> Tensor:
        """The inverse of `sf`: ``ppf(1 - q)``, so that the digits of a small ``q`` are those of ``1 - q``."""
        return self.ppf(subtract(1.0, q), *args, **kwargs)

    def median(self, *args: Any, **kwargs: Any) -> Tensor:
        """``ppf(0.5)``."""
        return self.ppf(0.5, *args, **kwargs)

    def interval(self, confidence: Operand, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """The ends of the range around the median that has the probability ``confidence``."""
        outside = multiply(0.5, subtract(1.0, confidence))
        return self.ppf(outside, *args, **kwargs), self.ppf(subtract(1.0, outside), *args, **kwargs)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A distribution with its parameters, as ``norm(loc, scale)`` gives it."""

    family: Distribution
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def logpdf(self, x: Operand) -> Tensor:
        """The logarithm of the density at ``x``."""
        return self.family.logpdf(x, *self.args, **self.kwargs)

    def pdf(self, x: Operand) -> Tensor:
        """The density at ``x``."""
        return self.family.pdf(x, *self.args, **self.kwargs)

    def logpmf(self, k: Operand) -> Tensor:
        """The logarithm of the probability of ``k``."""
        return self.family.logpmf(k, *self.args, **self.kwargs)

    def pmf(self, k: Operand) -> Tensor:
        """The probability of ``k``."""
        return self.family.pmf(k, *self.args, **self.kwargs)

    def cdf(self, x: Operand) -> Tensor:
        """The probability of at most ``x``."""
        return self.family.cdf(x, *self.args, **self.kwargs)

    def logcdf(self, x: Operand) -> Tensor:
        """The logarithm of `cdf`."""
        return self.family.logcdf(x, *self.args, **self.kwargs)

    def sf(self, x: Operand) -> Tensor:
        """The probability of more than ``x``."""
        return self.family.sf(x, *self.args, **self.kwargs)

    def logsf(self, x: Operand) -> Tensor:
        """The logarithm of `sf`."""
        return self.family.logsf(x, *self.args, **self.kwargs)

    def ppf(self, q: Operand) -> Tensor:
        """The quantile: the inverse of `cdf`."""
        return self.family.ppf(q, *self.args, **self.kwargs)

    def isf(self, q: Operand) -> Tensor:
        """The inverse of `sf`."""
        return self.family.isf(q, *self.args, **self.kwargs)

    def median(self) -> Tensor:
        """``ppf(0.5)``."""
        return self.family.median(*self.args, **self.kwargs)

    def interval(self, confidence: Operand) -> tuple[Tensor, Tensor]:
        """The ends of the range around the median that has the probability ``confidence``."""
        return self.family.interval(confidence, *self.args, **self.kwargs)
