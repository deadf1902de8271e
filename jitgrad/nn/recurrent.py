"""Recurrent cells: one step of a GRU or LSTM."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.nn.init import uniform_parameter
from jitgrad.nn.module import Module
from jitgrad.ops.arithmetic import add, multiply, subtract
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.linalg import linear
from jitgrad.ops.movement import cut
from jitgrad.ops.placement import placing
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.trigonometric import tanh


class _Cell(Module):
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
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = uniform_parameter((rows, input_size), hidden_size, dtype)
        self.weight_hh = uniform_parameter((rows, hidden_size), hidden_size, dtype)
        self.register_parameter("bias_ih", uniform_parameter((rows,), hidden_size, dtype) if bias else None)
        self.register_parameter("bias_hh", uniform_parameter((rows,), hidden_size, dtype) if bias else None)

    def _zeros(self, x: Tensor) -> Tensor:
        return zeros((*x.shape[:-1], self.hidden_size), dtype=x.dtype)

    def _blocks(self, x: Tensor) -> list[Tensor]:
        """The blocks of hidden units along the last axis."""
        n = self.hidden_size
        return [cut(x, x.ndim - 1, k * n, (k + 1) * n) for k in range(self.gates)]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"


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
        from_x = self._blocks(linear(x, self.weight_ih, self.bias_ih))
        from_h = self._blocks(linear(h, self.weight_hh, self.bias_hh))
        r = sigmoid(add(from_x[0], from_h[0]))
        z = sigmoid(add(from_x[1], from_h[1]))
        n = tanh(add(from_x[2], multiply(r, from_h[2])))
        return add(multiply(subtract(1.0, z), n), multiply(z, h))


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
        total = add(linear(x, self.weight_ih, self.bias_ih), linear(h, self.weight_hh, self.bias_hh))
        i, f, g, o = self._blocks(total)
        c = add(multiply(sigmoid(f), c), multiply(sigmoid(i), tanh(g)))
        return multiply(sigmoid(o), tanh(c)), c
