"""Recurrent layers over whole sequences: RNN, GRU and LSTM of several layers and both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.init import uniform_parameter
from jitgrad.nn.recurrent import State, gru_step, lstm_step, rnn_step
from jitgrad.nn.resetting import UniformStart
from jitgrad.nn.utils.rnn import PackedSequence
from jitgrad.ops.comparison import where
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.joining import concat, stack
from jitgrad.ops.linalg import linear
from jitgrad.ops.movement import expand_dims, squeeze, swapaxes
from jitgrad.ops.neural import dropout
from jitgrad.ops.placement import beside, placing
from jitgrad.ops.turns import Turns

_FEWEST_STEPS = 64  # of which a compiled function makes a loop: kernels of fewer go by rows through several steps


class _Recurrent(UniformStart):
    """Base class: ``num_layers`` layers of a step, each in one direction or both, with torch's names of parameters."""

    gates: int
    tensors_of_state = 1
    _step: Callable[[Tensor, Tensor, State], State]

    @placing
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_layers < 1 or not 0 <= dropout <= 1:
            raise ArgumentError(f"{type(self).__name__}: num_layers={num_layers} and dropout={dropout} are no such numbers")
        self.input_size: int = input_size
        self.hidden_size: int = hidden_size
        self.num_layers: int = num_layers
        self.bias: bool = bias
        self.batch_first: bool = batch_first
        self.dropout: float = dropout
        self.bidirectional: bool = bidirectional
        self.directions = 2 if bidirectional else 1
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * self.directions
            for suffix in self._suffixes(layer):
                setattr(self, f"weight_ih{suffix}", uniform_parameter((rows, width), hidden_size, dtype))
                setattr(self, f"weight_hh{suffix}", uniform_parameter((rows, hidden_size), hidden_size, dtype))
                for name in ("bias_ih", "bias_hh"):
                    given = uniform_parameter((rows,), hidden_size, dtype) if bias else None
                    self.register_parameter(name + suffix, given)
        self._start()

    def _fan_in(self) -> int:
        return self.hidden_size

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self.directions]

    def flatten_parameters(self) -> None:
        """Does nothing; torch arranges the memory of parameters here."""

    def _run(self, x: Any, given: tuple[Any, ...] | None) -> tuple[Any, State]:
        """All outputs, and the last states [num_layers * directions, batch, hidden_size] of each kind."""
        packed = x if isinstance(x, PackedSequence) else None
        x = asarray(x) if packed is None else packed.padded
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ShapeError(f"{type(self).__name__}: expected 2 or 3 axes, the last of {self.input_size}, got {x.aval}")
        alone = x.ndim == 2
        by_batch = self.batch_first and packed is None
        x = expand_dims(x, 1) if alone else swapaxes(x, 0, 1) if by_batch else x
        valid = None if packed is None else expand_dims(packed.mask(), -1)
        firsts = self._first_states(x, given, alone)
        lasts: list[State] = []
        for layer in range(self.num_layers):
            outs = []
            for suffix in self._suffixes(layer):
                out, last = self._direction(x, suffix, tuple(kind[len(lasts)] for kind in firsts), valid)
                outs.append(out)
                lasts.append(last)
            x = outs[0] if len(outs) == 1 else concat(outs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        final = tuple(stack(kind) for kind in zip(*lasts, strict=True))
        if alone:
            return squeeze(x, 1), tuple(squeeze(kind, 1) for kind in final)
        if packed is not None:
            return PackedSequence(x, packed.lengths), final
        return (swapaxes(x, 0, 1) if by_batch else x), final

    def _first_states(self, x: Tensor, given: tuple[Any, ...] | None, alone: bool) -> tuple[Any, ...]:
        shape = (self.num_layers * self.directions, x.shape[1], self.hidden_size)
        if given is None:
            with beside(x):
                return (zeros(shape, dtype=x.dtype),) * self.tensors_of_state
        states = tuple(expand_dims(asarray(state), 1) if alone else asarray(state) for state in given)
        for state in states:
            if state.shape != shape:
                raise ShapeError(f"{type(self).__name__}: the first state must have shape {shape}, got {state.aval}")
        return states

    def _direction(
        self, x: Tensor, suffix: str, state: State, valid: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """One layer in one direction over ``x`` [length, batch, features]: outputs and the last state.

        ``valid``, bool[length, batch, 1]: where it is false, the step does not change the state.
        """
        parameters = [getattr(self, name + suffix) for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
        arrays = [linear(x, *parameters[:2])]  # the inputs of all steps in one product

        def turn(state: State, slices: list[Tensor]) -> tuple[State, Tensor]:
            new = self._step(slices[0], linear(state[0], *parameters[2:]), state)
            if valid is not None:
                new = tuple([where(slices[1], after, before) for after, before in zip(new, state, strict=True)])
            return new, new[0]

        arrays += [] if valid is None else [valid]
        turns = Turns(type(self).__name__, turn, arrays, x.shape[0], suffix.endswith("_reverse"), fewest=_FEWEST_STEPS)
        state, outs = turns.run(state)
        return outs, state

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, bidirectional={self.bidirectional}"


class RNN(_Recurrent):
    """Elman networks over [length, batch, input_size], or [batch, length, input_size] with ``batch_first``.

    The input may be a :class:`jitgrad.nn.utils.rnn.PackedSequence`; then the outputs are one.

    Returns the outputs of the last layer and the last states [num_layers * directions, batch, hidden_size].
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        self.nonlinearity: str = nonlinearity
        self._step = rnn_step('RNN', nonlinearity)

    def forward(self, x: Any, hx: Any = None) -> tuple[Any, Tensor]:
        """The outputs and the last state, from the first state ``hx`` (None: zeros)."""
        out, (h,) = self._run(x, None if hx is None else (hx,))
        return out, h


class GRU(_Recurrent):
    """Gated recurrent units over [length, batch, input_size], or [batch, length, input_size] with ``batch_first``.

    The input may be a :class:`jitgrad.nn.utils.rnn.PackedSequence`; then the outputs are one.

    Returns the outputs of the last layer and the last states [num_layers * directions, batch, hidden_size].
    """

    gates = 3
    _step = staticmethod(gru_step)

    def forward(self, x: Any, hx: Any = None) -> tuple[Any, Tensor]:
        """The outputs and the last state, from the first state ``hx`` (None: zeros)."""
        out, (h,) = self._run(x, None if hx is None else (hx,))
        return out, h


class LSTM(_Recurrent):
    """Long short-term memories over [length, batch, input_size], or [batch, length, input_size] with ``batch_first``.

    The input may be a :class:`jitgrad.nn.utils.rnn.PackedSequence`; then the outputs are one.

    Returns the outputs of the last layer and the pair of last states, h and c, each [num_layers * directions, batch,
    hidden_size].
    """

    gates = 4
    tensors_of_state = 2
    _step = staticmethod(lstm_step)

    def forward(self, x: Any, hx: tuple[Any, Any] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """The outputs and the last ``(h, c)``, from the first ``(h, c)`` (None: zeros)."""
        out, (h, c) = self._run(x, hx)
        return out, (h, c)
