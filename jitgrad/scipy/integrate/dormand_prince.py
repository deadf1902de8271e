"""Solves dy/dt = f(y, t) for arrays, with steps whose error is controlled.

The pair of orders 5 and 4 is that of J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae" (1980);
values between steps are of the quartic through both ends, their slopes, and the value in the middle of L. F. Shampine,
"Some practical Runge-Kutta formulas" (1986). First steps and the control of steps are those of E. Hairer, S. P. Norsett
and G. Wanner, "Solving Ordinary Differential Equations I", II.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError

Array = np.ndarray[Any, Any]
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_MIDDLE = (
    6025192743 / 60171106304, 0.0, 51252292925 / 130801643196, -2691868925 / 90256659456, 187940372067 / 3189068634112,
    -1776094331 / 39487288512, 11237099 / 470086768,
)  # fmt: skip
_SAFETY, _SMALLEST, _LARGEST = 0.9, 0.2, 10.0  # of the factors between one step and the next


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What an integration is to keep: errors of a step below ``atol + rtol * |y|``, steps in number and length."""

    rtol: float
    atol: float
    most_steps: float = math.inf
    longest: float = math.inf

    def size(self, x: Array, *states: Array) -> float:
        """The root mean square of ``x`` in units of what is allowed at ``states``."""
        allowed = self.atol + self.rtol * np.max([np.abs(y) for y in states], axis=0)
        return float(np.sqrt(np.mean(np.square(x / allowed)))) if x.size else 0.0


class DormandPrince:
    """The solution of ``f`` from the vector ``y`` at the time ``t``, step by step."""

    def __init__(self, f: Callable[[Array, Any], Array], y: Array, t: Any, end: Any, accuracy: Accuracy) -> None:
        self.f = f
        self.accuracy = accuracy
        self.time_type: Any = np.result_type(t).type
        self.t: float = float(t)
        self.y: Array = y
        self.slope: Array = self._f(y, self.t)
        self.forward: float = 1.0 if end >= t else -1.0
        self.step: float = self._first_step(abs(float(end) - self.t))
        # of the last step: where it began, its length, and the coefficients of the quartic, the constant one last
        self.start: float = self.t
        self.length: float = 0.0
        self.quartic: tuple[Array, ...] = (y,)

    def _f(self, y: Array, t: float) -> Array:
        return self.f(y, self.time_type(t))

    def _first_step(self, whole: float) -> float:
        if whole == 0:
            return 0.0
        size, slope = self.accuracy.size(self.y, self.y), self.accuracy.size(self.slope, self.y)
        guess = 1e-6 if min(size, slope) < 1e-5 else 0.01 * size / slope
        guess = min(guess, whole)
        ahead = self._f(self.y + self._of_state(self.forward * guess) * self.slope, self.t + self.forward * guess)
        bend = self.accuracy.size(ahead - self.slope, self.y) / guess
        largest = max(slope, bend)
        wanted = max(1e-6, guess * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.2
        return min(100 * guess, wanted, self.accuracy.longest)

    def _of_state(self, x: float) -> Any:
        return self.y.dtype.type(x)

    def at(self, t: float) -> Array:
        """The solution at ``t``, after as many steps as that takes. Raises ArgumentError if these are too many."""
        steps = 0
        while self.forward * (t - self.t) > 0:
            stuck = self.t + self.forward * self.step == self.t or not math.isfinite(self.step)
            if stuck or steps >= self.accuracy.most_steps:
                raise ArgumentError(
                    f"odeint: {steps} steps, the last one of {self.step:.3g}, give no solution from t={self.t:.6g} to {t:.6g}: "
                    "allow larger errors by rtol= and atol=, or more steps by mxstep=; a stiff equation needs an implicit method"
                )
            self._advance()
            steps += 1
        if not self.length:
            return self.y
        part = self._of_state((t - self.start) / self.length)
        value = self.quartic[0]
        for coefficient in self.quartic[1:]:
            value = value * part + coefficient
        return value

    def _advance(self) -> None:
        """One step, shorter ones until the error is small enough."""
        while True:
            length = self.forward * self.step
            slopes = [self.slope]
            for c, row in zip(_TIMES, _STAGES, strict=True):
                ahead = self.y + self._combined(length, row, slopes)
                slopes.append(self._f(ahead, self.t + c * length))
            error = self.accuracy.size(self._combined(length, _ERROR, slopes), self.y, ahead)
            factor = _SMALLEST if not math.isfinite(error) else _SAFETY * error**-0.2 if error else _LARGEST
            factor = min(_LARGEST, max(_SMALLEST, factor))
            if error <= 1:
                break
            self.step *= min(factor, 1.0)
            if self.t + self.forward * self.step == self.t:
                return
        self._accept(ahead, slopes, length)
        self.step = min(self.step * factor, self.accuracy.longest)

    def _combined(self, length: float, row: tuple[float, ...], slopes: list[Array]) -> Array:
        total = sum(self._of_state(length * w) * k for w, k in zip(row, slopes, strict=True) if w)
        return np.asarray(total, self.y.dtype)

    def _accept(self, ahead: Array, slopes: list[Array], length: float) -> None:
        h, y = self._of_state(length), self.y
        middle = y + self._combined(length, _MIDDLE, slopes)
        first, last = h * slopes[0], h * slopes[-1]
        self.quartic = (
            2 * (last - first) - 8 * (ahead + y) + 16 * middle,
            5 * first - 3 * last + 18 * y + 14 * ahead - 32 * middle,
            last - 4 * first - 11 * y - 5 * ahead + 16 * middle,
            first,
            y,
        )
        self.start, self.length = self.t, length
        self.t += length
        self.y, self.slope = ahead, slopes[-1]


def solution(f: Callable[[Array, Any], Array], y: Array, times: Array, accuracy: Accuracy) -> Array:
    """The solution of dy/dt = ``f(y, t)`` that is ``y`` at the first of ``times``, at all of them, which rise or fall."""
    out = np.empty((len(times), *y.shape), y.dtype)
    if not len(times):
        return out
    out[0] = y
    solver = DormandPrince(f, y, times[0], times[-1], accuracy)
    for k, t in enumerate(times[1:], 1):
        out[k] = solver.at(float(t))
    return out
