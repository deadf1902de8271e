"""Methods and functions that programs for torch call first, whose functions are elsewhere: they give what torch gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError
from tests.agreement import assert_compiled_is_eager, assert_same_as_torch

RNG = np.random.default_rng(8)
X, V = RNG.normal(size=(4, 4)) + 2 * np.eye(4), RNG.normal(size=6) + 0.1
SPD = X @ X.T + np.eye(4)
F = jg.nn.functional


def _functional(m: Any) -> Any:
    return m.nn.functional


SAME: dict[str, tuple[Any, ...]] = {
    "determinants": (lambda m, x: (x.det(), *x.slogdet(), x.inverse(), x.pinverse(), x.matrix_power(3)), X),
    "logdet": (lambda m, x: (x @ x.mT).logdet(), X),
    "cholesky": (lambda m, s, x: (s.cholesky(), x.cholesky_solve(s.cholesky()), s.cholesky().cholesky_inverse()), SPD, X),
    "parts": (lambda m, v: (*v.tensor_split(4), v.hardshrink(0.4), *m.unsafe_chunk(v, 2)), V),
    "polygamma": (lambda m, v: (v.abs().polygamma(1), m.digamma(v.abs())), V),
    "comparisons": (lambda m, v: [getattr(v.detach().clone(), f"{k}_")(0.2) for k in
        "eq ne lt le gt ge less less_equal greater greater_equal not_equal".split()], V),
    "changes": (lambda m, v: [
        (v * 1.0).heaviside_(m.ones(6, dtype=v.dtype) * 0.5).detach(), m.threshold_(v * 1.0, 0.1, -2.0),
        (v.abs() * 1.0).polygamma_(1),
    ], V),
    "changes of layers": (lambda m, v: [
        _functional(m).relu_(v * 1.0), _functional(m).leaky_relu_(v * 1.0, 0.2), _functional(m).elu_(v * 1.0, 0.7),
        _functional(m).selu_(v * 1.0), _functional(m).celu_(v * 1.0, 0.6), _functional(m).hardtanh_(v * 1.0, -0.3, 0.4),
        _functional(m).threshold_(v * 1.0, 0.1, -2.0), m.dropout_(v * 1.0, 0.5, False),
    ], V),
    "small functions": (lambda m, x: (m.adjoint(x), m.chain_matmul(x, x, x), m.fill(x.detach(), 2.0), m.resolve_conj(x)), X),
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:torch.*deprecated")
@pytest.mark.parametrize("name", SAME)
def test_same_as_torch(name: str) -> None:
    call, *arrays = SAME[name]
    assert_same_as_torch(call, *arrays)


@pytest.mark.parametrize("name", SAME)
def test_compiled(name: str) -> None:
    call, *arrays = SAME[name]
    assert_compiled_is_eager(call, *arrays, rtol=1e-9, atol=1e-12)


def test_random_methods() -> None:
    jg.manual_seed(11)
    assert jg.initial_seed() == 11
    p = jg.tensor([0.0, 1.0, 0.5])
    drawn = jg.stack([p.bernoulli() for _ in range(400)])
    np.testing.assert_allclose(drawn.numpy().mean(0), [0.0, 1.0, 0.5], atol=0.1)
    assert p.bernoulli(1.0).tolist() == [1.0, 1.0, 1.0]
    assert sorted(jg.ones(5).multinomial(5).tolist()) == [0, 1, 2, 3, 4]
    counts = jg.poisson(jg.full((4000,), 3.0))
    assert counts.dtype == np.float32 and abs(counts.numpy().mean() - 3.0) < 0.15
    assert jg.seed() == jg.initial_seed()


def test_dropout_in_place_zeroes_and_scales() -> None:
    x = jg.ones(1000)
    assert jg.dropout_(x, 0.5, True) is x
    assert set(np.unique(x.numpy())) == {0.0, 2.0}
    with pytest.raises(ArgumentError, match="relu_ changes a tensor in place"):
        F.relu_([1.0])


def test_numpy_by_force() -> None:
    x = jg.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(x.numpy(force=True), X)
    np.testing.assert_array_equal((x * 2).numpy(force=True), 2 * X)


def test_questions() -> None:
    x = jg.tensor(X, requires_grad=True)
    assert jg.is_nonzero(jg.tensor(2)) and not jg.is_nonzero(jg.tensor(0.0))
    assert jg.is_same_size(x, x) and jg.is_signed(x) and not jg.is_signed(jg.tensor([True]))
    assert not (jg.is_conj(x) or jg.is_neg(x) or jg.is_inference(x))
    assert not jg.detach(x).requires_grad and jg.resolve_neg(x) is x and jg.get_default_device() == "cpu"
    assert jg.range(1, 4).tolist() == [1.0, 2.0, 3.0, 4.0] and jg.range(2, dtype=jg.int64).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match="in steps of 0"):
        jg.range(1, 4, 0)
    before = np.get_printoptions()
    try:
        jg.set_printoptions(precision=2, sci_mode=False)
        assert str(jg.tensor(1 / 3)).startswith("tensor(0.33")
        jg.set_printoptions(profile="full")
        with pytest.raises(ArgumentError, match="profile must be"):
            jg.set_printoptions(profile="long")
    finally:
        np.set_printoptions(**before)


MAPS = RNG.normal(size=(2, 3, 4))


@pytest.mark.peers
@pytest.mark.parametrize("align_corners", [False, True])
def test_grids_of_volumes_are_those_of_torch(align_corners: bool) -> None:
    def call(m: Any, maps: Any) -> Any:
        return m.nn.functional.affine_grid(maps, (2, 1, 3, 4, 2), align_corners=align_corners)

    assert_same_as_torch(call, MAPS)
    found = jg.jit(lambda maps: call(jg, maps))(jg.tensor(MAPS))
    np.testing.assert_allclose(found.numpy(), call(jg, jg.tensor(MAPS)).numpy())
