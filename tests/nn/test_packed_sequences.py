"""Sequences of different lengths in recurrent layers, against torch, and against each sequence alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.nn.utils import rnn
from tests.agreement import assert_same_as_torch
from tests.nn.test_torch_layers import same_layers

RNG = np.random.default_rng(0)
X, LENGTHS = RNG.normal(size=(4, 6, 3)), [3, 6, 1, 4]
PARTS = [RNG.normal(size=(n, 3)) for n in (4, 2, 1)]


def run_of(module: Any) -> Any:
    return module.nn.utils.rnn if module is jg else __import__("torch").nn.utils.rnn


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_layers_compute_what_torch_computes(kind: str) -> None:
    ours, theirs = same_layers(lambda m: getattr(m, kind)(3, 5, 2, batch_first=True, bidirectional=True))

    def call(module: Any, x: Any) -> Any:
        layer, r = ours if module is jg else theirs, run_of(module)
        packed = r.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        out, state = layer(packed)
        padded, lengths = r.pad_packed_sequence(out, batch_first=True, padding_value=0.5)
        return padded, lengths, *(state if kind == "LSTM" else (state,))

    assert_same_as_torch(call, X)


@pytest.mark.peers
def test_padding_is_torchs() -> None:
    def call(module: Any, *parts: Any) -> Any:
        r = run_of(module)
        padded = [r.pad_sequence(list(parts)), r.pad_sequence(list(parts), True, -1.0)]
        padded.append(r.pad_sequence(list(parts), padding_side="left"))
        packed = r.pack_sequence(list(parts))
        more = r.pad_packed_sequence(packed, total_length=6)
        return *padded, *more, *r.unpack_sequence(packed), *r.unpad_sequence(padded[1], module.tensor([4, 2, 1]), True)

    assert_same_as_torch(call, *PARTS)


def test_a_compiled_layer_takes_lengths_as_data() -> None:
    layer = nn.LSTM(3, 5, bidirectional=True).double()

    @jg.jit(backend="python")
    def last(x: Any, lengths: Any) -> Any:
        out, (h, _) = layer(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
        return rnn.pad_packed_sequence(out)[0], h

    x = jg.tensor(X.transpose(1, 0, 2).copy())
    for lengths in ([3, 6, 1, 4], [6, 2, 5, 5], [1, 1, 1, 6]):
        out, h = last(x, jg.tensor(lengths))
        for k, n in enumerate(lengths):
            alone, (state, _) = layer(x[:n, k])
            np.testing.assert_allclose(out.detach().numpy()[:n, k], alone.detach().numpy(), rtol=1e-12)
            assert not out.detach().numpy()[n:, k].any()
            np.testing.assert_allclose(h.detach().numpy()[:, k], state.detach().numpy(), rtol=1e-12)
    assert last.cache_info().traces == 1


def test_gradients_stop_at_the_end_of_each_sequence() -> None:
    layer = nn.GRU(3, 4, batch_first=True)
    x = jg.tensor(X, dtype="float32", requires_grad=True)
    out, h = layer(rnn.pack_padded_sequence(x, LENGTHS, True, False))
    (rnn.pad_packed_sequence(out)[0].sum() + h.sum()).backward()

    touched = (x.grad.numpy() != 0).any(axis=2)
    assert touched.tolist() == [[t < n for t in range(6)] for n in LENGTHS]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rnn.pack_padded_sequence(X, LENGTHS, True), ArgumentError, "enforce_sorted=False"),
        (lambda: rnn.pack_padded_sequence(X, [7, 6, 5, 5], True), ArgumentError, "must lie in 1 to 6"),
        (lambda: rnn.pack_padded_sequence(X, [6, 6], True), ShapeError, "expected 4 integer lengths"),
        (lambda: rnn.pad_sequence([X[0], X[0, :, :2]]), ArgumentError, "differ in their first axis only"),
        (lambda: rnn.pad_packed_sequence(rnn.pack_sequence(PARTS), total_length=3), ArgumentError, "less than the longest, 4"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
