"""Recurrent networks: the steps of RNN, GRU and LSTM, as cells and over whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.nn.init import uniform_parameter
from jitgrad.nn.resetting import UniformStart
from jitgrad.ops.activations import relu
from jitgrad.ops.arithmetic import add, multiply, subtract
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.linalg import linear
from jitgrad.ops.movement import cut
from jitgrad.ops.placement import beside, placing
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.trigonometric import tanh

State = tuple[Tensor, ...]  # h, or h and c


def _blocks(x: Tensor, count: int) -> list[Tensor]:
    """``x`` cut into ``count`` blocks of hidden units along the last axis."""
    n = x.shape[-1] // count
    return [cut(x, x.ndim - 1, k * n, (k + 1) * n) for k in range(count)]


# --- one step, from the linear maps of input and state -----------------------------------------------------------


def rnn_tanh_step(from_x: Tensor, from_h: Tensor, _state: State) -> State:
    """J. L. Elman, "Finding structure in time", 1990."""
    return (tanh(add(from_x, from_h)),)


def rnn_relu_step(from_x: Tensor, from_h: Tensor, _state: State) -> State:
    """An Elman network with rectified units."""
    return (relu(add(from_x, from_h)),)


@composed
def _gru_state(from_x: Tensor, from_h: Tensor, h: Tensor) -> Tensor:
    of_x, of_h = _blocks(from_x, 3), _blocks(from_h, 3)
    r = sigmoid(add(of_x[0], of_h[0]))
    z = sigmoid(add(of_x[1], of_h[1]))
    n = tanh(add(of_x[2], multiply(r, of_h[2])))
    return add(multiply(subtract(1.0, z), n), multiply(z, h))


def gru_step(from_x: Tensor, from_h: Tensor, state: State) -> State:
    """K. Cho et al., EMNLP 2014; gates r, z, n as in torch."""
    return (_gru_state(from_x, from_h, state[0]),)


@composed
def _lstm_cell(gates: Tensor, c: Tensor) -> Tensor:
    i, f, g = _blocks(gates, 4)[:3]
    return add(multiply(sigmoid(f), c), multiply(sigmoid(i), tanh(g)))


@composed
def _lstm_output(gates: Tensor, c: Tensor) -> Tensor:
    return multiply(sigmoid(_blocks(gates, 4)[3]), tanh(c))


def lstm_step(from_x: Tensor, from_h: Tensor, state: State) -> State:
    """S. Hochreiter, J. Schmidhuber, 1997; gates i, f, g, o as in torch."""
    gates = add(from_x, from_h)
    c = _lstm_cell(gates, state[1])
    return _lstm_output(gates, c), c


STEPS: Mapping[str, Callable[[Tensor, Tensor, State], State]] = {"tanh": rnn_tanh_step, "relu": rnn_relu_step}


def rnn_step(what: str, nonlinearity: str) -> Callable[[Tensor, Tensor, State], State]:
    """The step with this nonlinearity. Raises ArgumentError if there is none."""
    if nonlinearity not in STEPS:
        raise ArgumentError(f"{what}: nonlinearity must be 'tanh' or 'relu', got {shown(nonlinearity)}")
    return STEPS[nonlinearity]


# --- cells -------------------------------------------------------------------------------------------------------


class _Cell(UniformStart):
    """Base class of cells: weights for ``gates`` blocks of hidden units, and a zero state."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    gates: int

    @placing
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        self.input_size: int = input_size
        self.hidden_size: int = hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = uniform_parameter((rows, input_size), hidden_size, dtype)
        self.weight_hh = uniform_parameter((rows, hidden_size), hidden_size, dtype)
        self.register_parameter("bias_ih", uniform_parameter((rows,), hidden_size, dtype) if bias else None)
        self.register_parameter("bias_hh", uniform_parameter((rows,), hidden_size, dtype) if bias else None)
        self._start()

    def _fan_in(self) -> int:
        return self.hidden_size

    def _zeros(self, x: Tensor) -> Tensor:
        with beside(x):
            return zeros((*x.shape[:-1], self.hidden_size), dtype=x.dtype)

    def _projected(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Both linear maps, [..., gates * hidden_size]."""
        return linear(x, self.weight_ih, self.bias_ih), linear(h, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"


class RNNCell(_Cell):
    """One step of an Elman network: ``h' = tanh(W_x x + b_x + W_h h + b_h)``, or relu."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity: str = nonlinearity
        self._step = rnn_step('RNNCell', nonlinearity)

    def forward(self, x: Any, hx: Any = None) -> Tensor:
        """The next state [..., hidden_size] from [..., input_size] and ``hx`` (None: zeros)."""
        x = asarray(x)
        h = self._zeros(x) if hx is None else asarray(hx)
        return self._step(*self._projected(x, h), (h,))[0]


class GRUCell(_Cell):
    """One step of a gated recurrent unit (K. Cho et al., EMNLP 2014, in torch's arrangement of the
    gates r, z, n)::

        r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
        z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
        n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
        h' = (1 - z) * n + z * h
    """

    gates = 3

    def forward(self, x: Any, hx: Any = None) -> Tensor:
        """The next state [..., hidden_size] from [..., input_size] and ``hx`` (None: zeros)."""
        x = asarray(x)
        h = self._zeros(x) if hx is None else asarray(hx)
        return gru_step(*self._projected(x, h), (h,))[0]


class LSTMCell(_Cell):
    """One step of a long short-term memory (S. Hochreiter, J. Schmidhuber, 1997; gates i, f, g, o
    as in torch)::

        i, f, o = sigmoid(...);  g = tanh(...)
        c' = f * c + i * g
        h' = o * tanh(c')
    """

    gates = 4

    def forward(self, x: Any, hx: tuple[Any, Any] | None = None) -> tuple[Tensor, Tensor]:
        """The next ``(h, c)`` from input [..., input_size] and ``(h, c)`` (None: zeros)."""
        x = asarray(x)
        h, c = (self._zeros(x), self._zeros(x)) if hx is None else map(asarray, hx)
        new_h, new_c = lstm_step(*self._projected(x, h), (h, c))
        return new_h, new_c
