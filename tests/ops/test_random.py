"""Philox against its published vectors; generators, and the distributions drawn from them."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd.backward import backward
from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.library_names import native_names
from jitgrad.core.errors import ArgumentError, DtypeError, InPlaceError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import philox, random
from jitgrad.ops.neural import dropout
from jitgrad.ops.random import Generator
from jitgrad.ops.reduce import sum as sum_
from jitgrad.testing import check_grads
from tests.machine_code import run, table

N = 20_000
DRAWS: dict[str, Callable[[Generator], Tensor]] = {
    "rand": lambda g: g.rand(5, 3),
    "randn": lambda g: g.randn(7),
    "randn64": lambda g: g.randn(7, dtype=np.float64),
    "randint": lambda g: g.randint(0, 10, (5,)),
    "uniform": lambda g: g.uniform(-1.0, 2.0, (3, 3)),
    "normal": lambda g: g.normal(1.0, 2.0, 4),
    "bernoulli": lambda g: g.bernoulli(0.5, (9,)),
    "randperm": lambda g: g.randperm(11),
}


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        (0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (2**128 - 1, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            0x0370734413198A2E85A308D3243F6A88,
            0x299F31D0A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_words(counter: int, key: int, expected: tuple[int, ...]) -> None:
    # known-answer vectors of the authors' Random123 library for philox4x32-10
    assert philox.philox_block(key, counter) == expected


def bits_by_definition(key: int, counter: int, index: int) -> int:
    words = philox.philox_block(key, counter + index // 2)
    return words[index % 2 * 2] << 32 | words[index % 2 * 2 + 1]


@pytest.mark.parametrize(("key", "counter"), [(0, 0), (2**63 + 12345, 2**32 - 3), (17, 2**40)])
def test_all_forms_of_philox_agree(key: int, counter: int) -> None:
    expected = [bits_by_definition(key, counter, i) for i in range(21)]
    index = np.arange(21, dtype=np.uint64)
    k, c = np.uint64(key), np.uint64(counter)

    with np.errstate(over="ignore"):  # unsigned arithmetic modulo 2**64 is meant
        scalar = [int(philox.philox_bits(k, c, i)) for i in index]

    assert scalar == expected
    assert philox.philox_consecutive(key, counter, 21).tolist() == expected
    assert philox.philox_scattered(k, c, index).tolist() == expected


@pytest.mark.numba
def test_philox_compiles_for_kernels() -> None:
    text = "def kernel(y, start, stop):\n    for i in range(start, stop):\n"
    text += f"        y[i] = philox_bits_u64(to_u64({2**63 + 5}), to_u64({2**32 - 1}), to_u64(i))\n"
    code = compile_entry(text, "kernel", native_names(), params=("u64*",), key=None)
    found = np.zeros(5, np.uint64)

    run(code, table(found), 0, 5)

    assert found.tolist() == [bits_by_definition(2**63 + 5, 2**32 - 1, i) for i in range(5)]


def test_long_draws_are_the_same_across_their_stretches() -> None:
    long = philox.philox_consecutive(5, 0, 4 * philox.STRETCH + 7)

    short = philox.philox_consecutive(5, philox.STRETCH - 1, 5)

    np.testing.assert_array_equal(long[2 * philox.STRETCH - 2 :][:5], short)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_seed_gives_the_same_numbers_and_each_draw_new_ones(draw: Callable[[Generator], Tensor]) -> None:
    a, b = Generator(7), Generator(7)

    first, second = draw(a).tolist(), draw(a).tolist()

    assert first == draw(b).tolist()
    assert first != second
    assert draw(a.manual_seed(7)).tolist() == first
    assert draw(Generator(8)).tolist() != first


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_no_block_is_used_twice(draw: Callable[[Generator], Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[int, int]] = []
    consecutive = philox.philox_consecutive

    def spy(key: int, counter: int, count: int) -> Any:
        used.append((counter, counter + (count + 1) // 2))
        return consecutive(key, counter, count)

    monkeypatch.setattr(philox, "philox_consecutive", spy)
    monkeypatch.setattr(Generator, "_known", lambda *_: None)  # read-aheads compute blocks of later draws
    generator = Generator(1)
    for _ in range(3):
        draw(generator)

    assert all(stop <= start for (_, stop), (start, _) in pairwise(used))
    assert used[-1][1] == int(generator.state.tolist()[1])


def test_the_state_is_one_tensor_that_draws_change_in_place() -> None:
    generator = Generator(-1)
    state = generator.state

    generator.rand(5)

    assert generator.state is state
    assert state.tolist() == [2**64 - 1, 3]


def test_the_default_generator_obeys_manual_seed() -> None:
    random.manual_seed(11)
    first = random.rand(3).tolist()
    random.manual_seed(11)

    assert random.rand(3).tolist() == first == Generator(11).rand(3).tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_numbers(dtype: Any) -> None:
    x = Generator(0).rand(N, dtype=dtype).numpy()

    assert x.dtype == dtype
    assert x.min() >= 0 and x.max() < 1
    counts = np.histogram(x, 20, (0, 1))[0]
    assert ((counts - N / 20) ** 2 / (N / 20)).sum() < 45  # chi squared of 19 degrees: beyond 45 once in 1,500


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_normal_numbers(dtype: Any) -> None:
    x = Generator(0).randn(N, dtype=dtype).numpy()

    assert x.dtype == dtype
    z = np.sort(x.astype(np.float64))
    cdf = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in z])
    distance = np.abs(cdf - (np.arange(N) + 0.5) / N).max()
    assert distance < 1.95 / math.sqrt(N)  # Kolmogorov-Smirnov: beyond it once in 1,000


def test_neighbours_and_halves_are_not_correlated() -> None:
    x = Generator(3).randn(N).numpy()

    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(N)
    assert abs(np.corrcoef(x[: N // 2], x[N // 2 :])[0, 1]) < 4 / math.sqrt(N // 2)


@pytest.mark.parametrize(("low", "high"), [(0, 7), (-3, 4), (-(2**63), 2**63)])
def test_integers_fill_their_range(low: int, high: int) -> None:
    x = Generator(0).randint(low, high, (N,)).numpy()

    assert x.dtype == np.int64
    eighths = np.histogram(x.astype(np.float64), 7, (float(low), float(high)))[0]
    assert ((eighths - N / 7) ** 2 / (N / 7)).sum() < 25
    if high - low == 7:
        assert set(x.tolist()) == set(range(low, high))


def test_randint_takes_torchs_arguments() -> None:
    assert random.randint(5, (2, 3)).shape == (2, 3)
    assert random.randint(3, 5, (4,)).shape == (4,)
    assert random.randint(0, 256, (4,), dtype=np.uint8).dtype == np.uint8
    assert random.randint(5).shape == ()


@pytest.mark.parametrize("arguments", [(5, 5), (0, 2**63 + 1), (0, 257, (2,), np.uint8)])
def test_randint_refuses_ranges_that_do_not_fit(arguments: Any) -> None:
    low, high, *rest = arguments
    with pytest.raises(ArgumentError, match="randint"):
        random.randint(low, high, *rest[:1], dtype=rest[1] if rest else None)


def test_randperm_is_a_permutation_and_every_position_equally_likely() -> None:
    generator = Generator(2)
    assert sorted(generator.randperm(1000).tolist()) == list(range(1000))
    firsts = [generator.randperm(4).tolist()[0] for _ in range(2000)]
    assert all(abs(firsts.count(k) - 500) < 100 for k in range(4))


def test_bernoulli_takes_a_tensor_of_probabilities() -> None:
    p = np.array([0.0, 0.25, 1.0])

    x = Generator(0).bernoulli(np.broadcast_to(p, (N, 3)).copy()).numpy()

    assert x.dtype == np.float64
    np.testing.assert_allclose(x.mean(0), p, atol=0.02)


def test_gradients_flow_to_the_parameters_of_normal_and_uniform() -> None:
    check_grads(lambda m, s: random.normal(m, s, (3,), generator=Generator(1)), [np.zeros(3), np.ones(3)])
    check_grads(lambda a, b: random.uniform(a, b, generator=Generator(1)), [np.zeros(3), np.ones(3)])


@pytest.mark.parametrize("size", [(), (0,), (1,), (2, 0, 3)])
def test_small_and_empty_draws(size: tuple[int, ...]) -> None:
    for draw in (random.rand, random.randn):
        first = draw(size, generator=Generator(0))  # of the first blocks, as random numbers ahead of it are none yet
        assert (first.shape, first.dtype) == (size, np.float32)
        assert draw(size).shape == size
    assert random.randint(0, 3, size).shape == size


def test_errors_of_the_draws() -> None:
    with pytest.raises(DtypeError, match="rand"):
        random.rand(3, dtype=np.int64)
    with pytest.raises(ArgumentError, match="negative"):
        random.rand(-3)
    with pytest.raises(ArgumentError, match="probability"):
        random.bernoulli(1.5, 3)
    with pytest.raises(ArgumentError, match="seed"):
        Generator(1.5)  # type: ignore[arg-type]


# --- dropout -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean(p: float) -> None:
    x = np.ones(N, np.float32)

    y = dropout(x, p, generator=Generator(0)).numpy()

    assert y.dtype == np.float32
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((y == 0).mean() - p) < 0.02


def test_dropout_at_its_ends_and_outside_training() -> None:
    x = Tensor(np.array([1.0, np.inf, -2.0]))

    assert dropout(x, 0.0) is x
    assert dropout(x, 0.5, training=False) is x
    np.testing.assert_array_equal(dropout(np.ones(5), 1.0).numpy(), 0)
    with pytest.raises(ArgumentError, match="dropout"):
        dropout(x, 1.5)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_with_a_tensor_as_probability_is_the_same(p: float) -> None:
    x = np.arange(1.0, 9.0)

    by_tensor = dropout(x, Tensor(np.array(p)), generator=Generator(5)).numpy()

    np.testing.assert_allclose(by_tensor, dropout(x, p, generator=Generator(5)).numpy())


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_the_gradient_of_dropout_has_the_mask_of_the_result(p: float) -> None:
    check_grads(lambda x: dropout(x, p, generator=Generator(5)), [np.arange(1.0, 9.0)])


def test_dropout_gradient_is_zero_where_it_dropped() -> None:
    x = Tensor(np.ones(50)).requires_grad_()
    y = dropout(x, 0.5, generator=Generator(5))

    backward(sum_(y))

    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), y.concrete("a test"))


def test_threads_that_share_a_generator_draw_different_numbers() -> None:
    generator, drawn = Generator(0), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda: drawn.extend(generator.rand(3).tolist() for _ in range(200))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    expected = Generator(0)
    assert sorted(drawn) == sorted(expected.rand(3).tolist() for _ in range(800))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_of_the_standard_parameters_are_those_of_rand_and_randn(dtype: str):
    def drawn(draw: Any) -> Any:
        jg.manual_seed(7)
        return draw()

    standard = drawn(lambda: jg.randn(33, dtype=dtype)), drawn(lambda: jg.rand(33, dtype=dtype))
    for zero, one in ((0, 1), (0.0, 1.0)):
        results = (
            drawn(lambda: jg.normal(zero, one, (33,), dtype=dtype)),
            drawn(lambda: jg.uniform(zero, one, (33,), dtype=dtype)),
        )
        compiled = (
            drawn(jg.jit(lambda: jg.normal(zero, one, (33,), dtype=dtype))),
            drawn(jg.jit(lambda: jg.uniform(zero, one, (33,), dtype=dtype))),
        )
        for expected, *others in zip(standard, results, compiled, strict=True):
            for other in others:
                assert other.dtype == expected.dtype
                np.testing.assert_array_equal(other.numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("method", "arguments"), [("normal_", (1.5, 0.3)), ("normal_", ()), ("uniform_", (-2.0, 3.5)), ("uniform_", (0.1, 0.7))]
)
def test_numbers_in_place_are_those_of_the_functions(method: str, arguments: tuple[float, ...], dtype: Any) -> None:
    function = jg.normal if method == "normal_" else jg.uniform
    first, second = Generator(3), Generator(3)
    x = jg.zeros(6, 5, dtype=dtype)
    every_second = x[::2]

    for _ in range(2):
        getattr(every_second, method)(*arguments, generator=first)
        expected = function(*arguments, size=(3, 5), dtype=dtype, generator=second).numpy()
        np.testing.assert_array_equal(every_second.numpy(), expected)
    assert (x.numpy()[1::2] == 0).all()
    assert (first.state.numpy() == second.state.numpy()).all()

    leaf = jg.ones(3, requires_grad=True)
    with pytest.raises(InPlaceError):
        getattr(leaf, method)(*arguments)
