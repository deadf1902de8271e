"""Long sequences: a recurrence of hundreds of turns over the library's own loop, which compilers need not write out."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program
from benchmarks.workload import Arrays, Sizes


def _recurrent(xp: Any, w: Any, u: Any, bias: Any, x: Any) -> Any:
    """An Elman network over ``x`` of (time, batch, feature): the mean size of its states."""

    def turn(h: Any, now: Any) -> Any:
        h = xp.tanh(xp.matmul(h, w) + xp.matmul(now, u) + bias)
        return h, xp.sum(h * h)

    last, sizes = xp.scan(turn, 0 * xp.matmul(x[0], u), x)
    return xp.mean(sizes) + xp.sum(last)


def _network(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, k, hidden = sizes["time"], sizes["features"], sizes["hidden"]
    weights = 0.1 * rng.normal(size=(hidden, hidden)), 0.1 * rng.normal(size=(k, hidden)), 0.1 * rng.normal(size=hidden)
    return tuple([x.astype(np.float32) for x in (*weights, rng.normal(size=(n, sizes["batch"], k)))])


def _filter(xp: Any, ahead: Any, back: Any, x: Any) -> Any:
    """A recursive filter of order three over many channels; ``x`` of (time, channel)."""

    def turn(state: Any, now: Any) -> Any:
        x1, x2, x3, y1, y2, y3 = state
        y = ahead[0] * now + ahead[1] * x1 + ahead[2] * x2 + ahead[3] * x3 - back[0] * y1 - back[1] * y2 - back[2] * y3
        return (now, x1, x2, y, y1, y2), y

    _, ys = xp.scan(turn, (0 * x[0],) * 6, x)
    return xp.mean(ys * ys)


def _channels(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    return np.array([0.2, 0.4, 0.1, 0.05]), np.array([0.5, -0.3, 0.1]), rng.normal(size=(sizes["time"], sizes["channels"]))


def _markov(xp: Any, transitions: Any, emissions: Any) -> Any:
    """The forward algorithm in logarithms; ``emissions`` of (time, state)."""

    def total(x: Any) -> Any:
        most = xp.max(x, axis=0, keepdims=True)
        return xp.log(xp.sum(xp.exp(x - most), axis=0)) + most[0]

    def turn(alpha: Any, now: Any) -> Any:
        return total(alpha[:, None] + transitions) + now, xp.sum(now)

    alpha, sums = xp.scan(turn, emissions[0], emissions[1:])
    return total(alpha) + 0 * xp.sum(sums)


def _chain(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    states = sizes["states"]
    return rng.normal(size=(states, states)), rng.normal(size=(sizes["time"], states))


_LIMITS = "the turns depend on each other"

PROGRAMS = (
    program(
        "long_recurrent",
        "Recurrent network over a long sequence",
        _network,
        gradient_of(_recurrent, (0, 1, 2)),
        {"time": 400, "batch": 16, "features": 32, "hidden": 64},
        {"time": 20, "batch": 2, "features": 3, "hidden": 4},
        _LIMITS,
    ),
    program(
        "long_filter",
        "Recursive filter over a long signal",
        _channels,
        gradient_of(_filter, (0, 1)),
        {"time": 400, "channels": 256},
        {"time": 20, "channels": 3},
        _LIMITS,
    ),
    program(
        "long_markov",
        "Hidden Markov model over a long sequence",
        _chain,
        gradient_of(_markov),
        {"time": 400, "states": 16},
        {"time": 20, "states": 3},
        _LIMITS,
    ),
)
