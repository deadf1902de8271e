"""vmap: values that the function reads, what it changes in place, and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import (
    InPlaceError,
    LeakedTracerError,
    RandomnessError,
    TracedValueError,
)
from tests.batching.examples import XS, P, close


def test_values_that_all_examples_share_may_be_read() -> None:
    mask = np.array([True, False, True])

    def one(x: Any) -> Any:
        scale = 2.0 if float(P.sum() ** 2) > 0 else 0.0
        return x[jg.tensor(mask)] * scale + np.asarray(P).sum() + len(P)

    close(jg.vmap(one)(XS), XS.numpy()[:, mask] * 2 + P.numpy().sum() + 3)


def test_values_of_examples_may_not_be_read() -> None:
    with pytest.raises(TracedValueError, match=r"bool.*differs between the examples.*where"):
        jg.vmap(lambda x: x if x.sum() > 0 else -x)(XS)
    with pytest.raises(TracedValueError, match="mask"):
        jg.vmap(lambda x: x[x > 0])(XS)


def test_new_tensors_may_be_changed_in_place_by_examples() -> None:
    def one(x: Any) -> Any:
        out = jg.zeros(3, dtype=jg.float64)
        out[1] = x[0]
        out[2] += x[1]
        return out

    close(jg.vmap(one)(XS), np.stack([np.zeros(5), XS.numpy()[:, 0], XS.numpy()[:, 1]], 1))
    close(jg.grad(lambda xs: jg.vmap(one)(xs).sum())(XS), np.array([[1.0, 1.0, 0.0]] * 5))


@pytest.mark.parametrize("compiled", [False, True])
def test_shared_tensors_may_be_changed_in_place_by_shared_values(compiled: bool) -> None:
    count = jg.zeros(3, dtype=jg.float64)

    def one(x: Any) -> Any:
        count.add_(1.0)
        return x + count

    mapped = jg.jit(jg.vmap(one)) if compiled else jg.vmap(one)
    close(mapped(XS), XS + 1.0)
    close(mapped(XS), XS + 2.0)
    close(count, np.full(3, 2.0))


def changes_argument(x: Any) -> Any:
    part = x[:1]
    part += 1.0
    return x


def changes_shared(x: Any) -> Any:
    BUFFER.add_(x)
    return x


def changes_with_history(x: Any) -> Any:
    BUFFER.add_((P.clone().requires_grad_() * 2).sum())
    return x


BUFFER = jg.zeros(3, dtype=jg.float64)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (changes_argument, "an argument: change a .clone"),
        (changes_shared, "which all examples share, by values that differ"),
        (changes_with_history, "with its history"),
    ],
)
def test_changes_in_place_that_have_no_meaning(one: Any, text: str) -> None:
    with pytest.raises(InPlaceError, match=text):
        jg.vmap(one)(XS)
    close(BUFFER, np.zeros(3))
    assert not BUFFER.requires_grad


def test_memory_that_others_share_is_not_changed() -> None:
    base = jg.zeros(4, dtype=jg.float64)
    view = base[1:]

    def one(x: Any) -> Any:
        view.add_(1.0)
        return x + base[:3]

    with pytest.raises(InPlaceError, match="shares its memory"):
        jg.vmap(one)(XS)
    close(base, np.zeros(4))


def test_gradients_of_outside_leaves_belong_to_examples() -> None:
    w = P.clone().requires_grad_()

    def one(x: Any) -> Any:
        (x * w).sum().backward()
        return x

    with pytest.raises(InPlaceError, match=r"Use jitgrad\.grad"):
        jg.vmap(one)(XS)
    assert w.grad is None


def test_backward_in_the_function() -> None:
    def one(x: Any) -> Any:
        x.requires_grad_()
        (x * x).sum().backward()
        return x.grad

    close(jg.vmap(one)(XS), XS * 2)
    assert not XS.requires_grad and XS.grad is None


def test_a_tensor_of_an_example_may_not_escape() -> None:
    kept: list[Any] = []
    jg.vmap(lambda x: kept.append(x * 2) or x)(XS)

    with pytest.raises(LeakedTracerError, match="vmap"):
        kept[0] + 1


# --- random numbers ----------------------------------------------------------------------------------------------


def test_random_numbers_need_a_decision() -> None:
    with pytest.raises(RandomnessError, match='randomness="different"'):
        jg.vmap(lambda x: x + jg.rand(3))(XS)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_random_numbers_differ_or_not(compiled: bool, nested: bool) -> None:
    def drawn(randomness: str) -> Any:
        def one(x: Any) -> Any:
            return x * 0 + jg.rand((), dtype=jg.float64)

        mapped = jg.vmap(jg.vmap(one, randomness=randomness) if nested else lambda x: one(x[0]), randomness=randomness)
        jg.manual_seed(1)
        return (jg.jit(mapped) if compiled else mapped)(XS).numpy()

    same, different = drawn("same"), drawn("different")
    assert np.unique(same).size == 1
    assert np.unique(different).size == different.size
    jg.manual_seed(1)
    np.testing.assert_array_equal(different, jg.rand(different.shape, dtype=jg.float64).numpy())


def test_the_stream_goes_on_after_vmap() -> None:
    for randomness, count in (("same", 2), ("different", 10)):
        generator = jg.Generator(3)
        jg.vmap(lambda x, g=generator: x + g.rand(2), randomness=randomness)(XS[:, 0])
        other = jg.Generator(3)
        other.rand(count)
        np.testing.assert_array_equal(generator.state.numpy(), other.state.numpy())


def test_a_generator_of_the_function_starts_anew_for_each_example() -> None:
    out = jg.vmap(lambda x: x * 0 + jg.Generator(5).rand(3, dtype=jg.float64))(XS)

    close(out, np.tile(jg.Generator(5).rand(3, dtype=jg.float64).numpy(), (5, 1)))


def test_states_of_generators_are_not_read_where_all_examples_draw() -> None:
    generator = jg.Generator(1)

    def reads_before(x: Any) -> Any:
        return x + generator.get_state().sum() * 0 + generator.rand(3)

    def reads_after(x: Any) -> Any:
        return x + generator.rand(3) + generator.get_state().sum() * 0

    for one in (reads_before, reads_after):
        with pytest.raises(RandomnessError):
            jg.vmap(one, randomness="different")(XS)
    segment = jg.checkpoint(lambda x: x * generator.rand(3))
    with pytest.raises(RandomnessError, match="checkpoint"):
        jg.vmap(jg.grad(lambda x: segment(x).sum()), randomness="different")(XS)
