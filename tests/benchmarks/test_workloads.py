"""Every workload at a tiny size: each installed library agrees with the float64 reference."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from benchmarks import peers as libraries
from benchmarks.measure import error_of, measure
from benchmarks.peers import leaves
from benchmarks.workload import Workload
from benchmarks.workloads import ALL

ONE_OF_EACH_KIND = ("gelu_chain", "cross_entropy", "mlp_step_32", "adam_mixed")


def failures(workload: Workload, names: list[str]) -> dict[str, str]:
    peers = libraries.load_all(names, threads=2, say=print)
    outcome = measure(workload, peers, quick=True, seconds=0.0, threads=2)
    return {row.peer: row.failure for row in outcome.rows if row.failure}


@pytest.mark.parametrize("name", [n for n in ALL if "step" not in n and not n.startswith("adam")])
def test_eager_and_numpy_agree_with_the_reference(name: str):
    assert failures(ALL[name], ["jitgrad.eager", "numpy"]) == {}


@pytest.mark.numba
@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_fused_agrees_with_the_reference(name: str):
    assert failures(ALL[name], ["jitgrad"]) == {}


@pytest.mark.numba
@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_all_fused_agree_with_the_reference(name: str):
    assert failures(ALL[name], ["jitgrad"]) == {}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch, by its optimisers
@pytest.mark.peers
@pytest.mark.parametrize("name", [n for n in ALL if not ALL[n].slow])
def test_other_libraries_agree_with_the_reference(name: str):
    assert failures(ALL[name], ["torch", "jax"] if name != "gru" else ["torch"]) == {}


@pytest.mark.parametrize("name", ["gelu_chain", "residual_norm_gelu", "gru", "pinn", "transformer"])
def test_gradients_are_those_of_finite_differences(name: str):
    """Checks along one random direction, in float64: the reference where neither PyTorch nor JAX is installed."""
    workload, rng = ALL[name], np.random.default_rng(1)
    peer = libraries.load("jitgrad.eager", 2)
    inputs = workload.inputs(rng, workload.quick)
    arrays = [x.astype(np.float64) for x in leaves(inputs)]

    def at(values: list[np.ndarray]) -> list[np.ndarray]:
        rest = iter(values)
        arguments = libraries.tree_map(lambda _: peer.array(next(rest)), inputs)
        return peer.arrays(workload.function(peer)(*arguments))

    _, *gradients = at(arrays)
    count = len(gradients)  # the differentiated arguments come first
    steps = [1e-5 * rng.standard_normal(x.shape) for x in arrays[:count]]
    up, down = ([x + sign * d for x, d in zip(arrays, steps)] + arrays[count:] for sign in (1, -1))

    expected = sum(float(np.sum(g * d)) for g, d in zip(gradients, steps, strict=True))
    assert (at(up)[0] - at(down)[0]) / 2 == pytest.approx(expected, rel=1e-5)


def test_every_workload_says_what_limits_it_and_has_a_quick_size():
    for workload in ALL.values():
        assert workload.limits
        assert workload.quick.keys() == workload.sizes.keys()


def test_a_result_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match="shape"):
        error_of([np.zeros(3)], [np.zeros((3, 1))])


def test_the_error_is_relative_to_the_largest_number_of_an_array():
    assert error_of([np.array([100.0, 0.1])], [np.array([100.0, 0.0])]) == pytest.approx(1e-3)


def test_a_missing_result_is_an_error():
    with pytest.raises(ValueError, match="1 results"):
        error_of([np.zeros(3)], [np.zeros(3), np.zeros(3)], complete=True)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_reference_comes_from_another_library_where_one_is_installed():
    outcome = measure(ALL["small_chain"], [], quick=True, seconds=0.0, threads=2)

    assert outcome.reference == "torch"
