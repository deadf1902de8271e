"""The first-call check: rounding passes, even in elements that are rounding noise; a wrong element does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.jit import rounding_judge, suspects
from jitgrad.jit.decorator import jit
from jitgrad.jit.disturbed_run import PartialDisturbance
from jitgrad.jit.executable import Executable
from jitgrad.jit.graph_run import GraphRun
from jitgrad.jit.rounding_judge import PARTIAL_RUNS, find_mismatches
from jitgrad.jit.suspects import choose_suspects, find_unlike


def judged(
    f: Callable[..., Any], ours: Any, *args: np.ndarray, program: Callable[..., Any] | None = None
) -> list[rounding_judge.Mismatch]:
    """The mismatches of ``ours`` as the result of ``f(*args)``; ``program`` gives it for other arguments."""
    eager = f(*map(jg.tensor, args)).numpy()
    compiled = jit(f, check="off", backend="python")
    compiled.lookup(*args)
    call = compiled._signature.take(args, {})
    executable = compiled.executable_for(call)
    inputs = [np.asarray(x) for x in executable.operands_before(call.leaves)]

    def rerun(arrays: Sequence[Any]) -> list[Any]:
        given = [jg.tensor(x) for x in arrays[: len(args)]]
        return [(program(*given) if program else ours(f(*given).numpy())).astype(eager.dtype)]

    pairs = {0: ("result", np.asarray(ours(eager), eager.dtype), eager)}
    return find_mismatches(executable.traced.graph, inputs, pairs, rerun)


def test_elements_that_are_rounding_alone_are_known() -> None:
    """The sign of a cancellation, as the first step of Adam takes it, where the difference is rounded away."""
    x = np.linspace(0.5, 4.0, 64, dtype=np.float32)

    def sign(x: Any) -> Any:
        noise = jg.exp(jg.log(x)) - x
        return jg.where(x > 2.0, 1.0, noise / (jg.abs(noise) + 1e-17))

    assert not judged(sign, lambda y: np.where(x > 2, y, -y), x)
    (mismatch,) = judged(sign, lambda y: -y, x)
    assert x[mismatch.element] > 2


def test_small_elements_beside_a_huge_one_are_judged_by_their_own_size() -> None:
    x = np.full(100, 1e-3, np.float32)
    x[0] = 1e6

    def wrong(y: np.ndarray) -> np.ndarray:
        return np.where(np.arange(100) == 50, y * 1.5, y)

    (mismatch,) = judged(lambda x: jg.tanh(x) * x, wrong, x)
    assert mismatch.element == (50,)


@pytest.mark.parametrize("f", [lambda x: jg.tanh(x), lambda x: jg.mean(x * x), lambda x: jg.softmax(x), lambda x: jg.exp(x) / x])
def test_a_relative_error_of_1e_5_in_float32_is_found(f: Callable[..., Any]) -> None:
    x = np.linspace(0.5, 2.0, 2000, dtype=np.float32)

    assert judged(f, lambda y: y * np.float32(1 + 1e-5), x)
    assert not judged(f, lambda y: y * np.float32(1 + 2e-7), x)


def test_one_wrong_integer_among_thousands_is_found() -> None:
    x = np.linspace(-9.0, 9.0, 2001, dtype=np.float32)

    def wrong(y: np.ndarray) -> np.ndarray:
        return y + (np.arange(y.size) == 77)

    assert judged(lambda x: (x * 10.3).astype(jg.int64), wrong, x)


def test_an_integer_next_to_a_tie_that_rounding_decides_is_right_either_way() -> None:
    x = np.linspace(1.0, 9.0, 2001, dtype=np.float32)

    def floor(x: Any) -> Any:
        return jg.floor(jg.exp(jg.log(jg.round(x)))).astype(jg.int64)

    assert not judged(floor, lambda y: np.where(y == np.rint(x), y - 1, np.rint(x)), x)
    assert judged(floor, lambda y: y + 2, x)


def test_large_integers_that_round_to_the_same_float64_differ() -> None:
    x = np.full(5, 1 << 60)

    assert judged(lambda x: x + 1, lambda y: y + 1, x)


def test_results_close_to_eager_need_no_disturbed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding_judge, "_cheapest_look", None)
    x = np.linspace(-3.0, 3.0, 100_000, dtype=np.float32)

    jit(lambda x: (x * x + 0.5, jg.sqrt(abs(x))))(x)


def test_an_alarm_in_a_long_sum_needs_the_whole_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy adds rows one after the other: a million times 0.1 is off by 1 %, and the fused sum is not."""
    x = np.full((200_000, 2), 0.1, np.float32)

    assert not judged(lambda x: jg.sum(x, axis=0), lambda y: np.full(2, 20_000), x)
    assert judged(lambda x: jg.sum(x, axis=0), lambda y: np.full(2, 25_000), x)


def normalised(x: Any) -> Any:
    for _ in range(6):
        x = (x - x.mean(axis=1, keepdims=True)) / jg.sqrt((x * x).mean(axis=1, keepdims=True) + 0.1)
        x = jg.gelu(x) - x.mean(axis=0) * 0.1
    return x


PLACES = jg.tensor(np.random.default_rng(1).permutation(400))


def indexed(x: Any) -> Any:
    for _ in range(12):
        x = jg.sin(x) + jg.take(x, PLACES, axis=0) * 0.3 - jg.roll(x, 7, axis=1) * 0.2
    return jg.cumulative_sum(x, axis=1)


def elements(graph: Any) -> int:
    return sum(out.aval.size for node in graph.nodes for out in node.outs)


@pytest.mark.parametrize("f", [normalised, indexed])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_where_everything_depends_on_everything_some_rows_explain_rounding(
    f: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(dtype)
    with_other_roundings = jit(f, check="off")(x).numpy()
    computed: list[int] = []
    run = GraphRun.__call__
    monkeypatch.setattr(GraphRun, "__call__", lambda self, d: computed.append(elements(self.graph)) or run(self, d))
    monkeypatch.setattr(rounding_judge, "_examine_all", None)

    assert not judged(f, lambda y: with_other_roundings, x)
    assert sum(computed) < 0.5 * elements(jit(f, check="off").graph(x, stage="trace"))


@pytest.mark.parametrize("f", [normalised, indexed])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_where_all_rows_are_needed_a_run_or_two_explain_rounding(
    f: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run costs about as much as an eager one: that of the check itself cannot be far from two."""
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    monkeypatch.setattr(rounding_judge, "thinned", lambda *_: None)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(dtype)
    with_other_roundings = jit(f, check="off")(x).numpy()
    runs: list[Any] = []
    run = GraphRun.__call__
    monkeypatch.setattr(GraphRun, "__call__", lambda self, d: runs.append(d) or run(self, d))

    assert not judged(f, lambda y: with_other_roundings, x)
    assert len(runs) <= PARTIAL_RUNS and all(isinstance(d, PartialDisturbance) for d in runs)


@pytest.mark.parametrize("f", [normalised, indexed])
def test_where_everything_depends_on_everything_a_wrong_element_is_found(
    f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype("f4")

    def wrong(y: np.ndarray) -> np.ndarray:
        y = y.copy()
        y[200, 300] *= 1.5
        return y

    (mismatch,) = judged(f, wrong, x)
    assert mismatch.element == (200, 300) and not mismatch.recorded_wrong


def steps(x: Any, at: int = -1, eps: float = 0.1, factor: float = 0.1, axis: int = 0, *, swapped: bool = False) -> Any:
    """`normalised`, with a mistake in step ``at``."""
    for k in range(6):
        e, c, a, turned = (eps, factor, axis, swapped) if k == at else (0.1, 0.1, 0, False)
        x = (x - x.mean(axis=1, keepdims=True)) / jg.sqrt((x * x).mean(axis=1, keepdims=True) + e)
        means = x.mean(axis=a, keepdims=True) * c
        x = means - jg.gelu(x) if turned else jg.gelu(x) - means
    return x


@pytest.mark.parametrize(
    ("mistake", "at"),  # in the first layer, one in the middle, and the last one
    [
        *[({"eps": 0.102}, at) for at in (0, 2, 5)],
        *[({"factor": 0.0}, 2), ({"factor": 0.102}, 0), ({"factor": 0.102}, 5), ({"axis": 1}, 5), ({"swapped": True}, 0)],
    ],
)
def test_where_everything_depends_on_everything_mistakes_are_found(
    mistake: dict[str, Any], at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype("f4")

    def program(x: Any) -> Any:
        return steps(x, at, **mistake).numpy()

    assert judged(steps, lambda y: program(jg.tensor(x)), x, program=program)


def diverging(x: Any) -> Any:
    """Of which rows that stand for others show too little: single elements are thousands of times as
    sensitive to roundings."""
    for _ in range(10):
        x = jg.sin(x * 6.0) - x.mean(axis=0) * 0.1
        x = x - x.mean(axis=1, keepdims=True) * 0.1
    return x


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_elements_that_the_last_bits_of_the_inputs_move_as_far_are_rounding(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    monkeypatch.setattr(suspects, "THIN_LENIENCE", 1.0)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(dtype)
    program = jit(diverging, check="off")
    costly: list[Any] = []
    examine_all = rounding_judge._examine_all
    monkeypatch.setattr(rounding_judge, "_examine_all", lambda *a: costly.append(a) or examine_all(*a))

    assert not judged(diverging, lambda y: program(x).numpy(), x, program=lambda x: program(x).numpy())
    assert not costly
    assert not judged(diverging, lambda y: program(x).numpy(), x)
    assert costly


def test_a_mistake_is_found_where_the_last_bits_of_the_inputs_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program must not be its own only witness: in this one the last bits decide."""
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype("f4")

    def program(x: Any) -> Any:
        return (normalised(x) + (x * 1e8 - x.astype("f8") * 1e8).astype("f4")).numpy()

    assert judged(normalised, lambda y: program(jg.tensor(x)), x, program=program)


@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_where_everything_depends_on_everything_small_relative_errors_are_found(size: float, monkeypatch: Any) -> None:
    """Of all elements, of one block, and large ones of single small elements."""
    monkeypatch.setattr(rounding_judge, "FREE_ELEMENTS", 1000)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype("f4")
    at = np.arange(x.size).reshape(x.shape)

    def f(x: Any) -> Any:
        x = normalised(x) * size
        return jg.concat([x[:, :1] * 1e6, x[:, 1:]], axis=1)

    assert judged(f, lambda y: y * np.float32(1 + 1e-4), x)
    assert judged(f, lambda y: np.where((at // 4096 == 3) & (at % 400 > 0), y * np.float32(1 + 1e-3), y), x)
    assert judged(f, lambda y: np.where(at == 60_003, y * np.float32(1.5), y), x)


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_numbers_whose_squares_are_not_finite_are_judged_as_others_are(size: float) -> None:
    x = np.linspace(1.0, 2.0, 50) * size

    assert not judged(lambda x: jg.exp(jg.log(x)), lambda y: y * (1 + 1e-13), x)
    assert judged(lambda x: jg.exp(jg.log(x)), lambda y: y * (1 + 1e-10), x)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.0])
def test_a_wrong_nan_or_infinity_is_found(wrong: float) -> None:
    x = np.linspace(1.0, 2.0, 50, dtype=np.float32)

    (mismatch,) = judged(lambda x: jg.exp(x) - x, lambda y: np.where(np.arange(50) == 9, wrong, y), x)
    assert mismatch.element == (9,)


@pytest.mark.parametrize(
    ("ours", "eager", "close"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 2.0 + 5e-7], True),
        ([1.0, 2.0], [1.0, 2.00001], False),
        ([1e6, 1e-6], [1e6, 2e-6], False),
        ([np.nan, 2.0], [np.nan, 2.0], True),
        ([np.nan, 2.0], [1.0, 2.0], False),
        ([1.0, 2.0], [np.nan, 2.0], False),
        ([np.inf, 2.0], [np.inf, 2.0], True),
        ([np.inf, 2.0], [-np.inf, 2.0], False),
        ([np.inf, 2.0], [3e38, 2.0], False),
        ([1e-30, 0.0], [2e-30, 0.0], False),
        ([], [], True),
    ],
)
def test_closeness_is_measured_by_each_element(ours: list[float], eager: list[float], close: bool) -> None:
    unlike = find_unlike(np.array(ours, np.float32), np.array(eager, np.float32))

    assert (unlike.size == 0) is close


def test_closeness_sees_every_element_of_a_large_result() -> None:
    eager = np.ones((3, 50_000), np.float32)
    for place in (0, 49_999, 99_999, 149_999):
        for wrong in (1.00001, np.nan, np.inf):
            ours = eager.copy()
            ours.flat[place] = wrong
            assert find_unlike(ours, eager).tolist() == [place]


def test_the_worst_of_many_suspects_are_examined() -> None:
    eager = np.full(100_000, 1e-3, np.float32)
    ours = eager * np.float32(1 + 1e-5)
    eager[7] = 1e6
    ours[[7, 500]] = 1e6 + 50, 1e-2

    suspects = choose_suspects(find_unlike(ours, eager), ours, eager, 9)

    assert {7, 500} <= set(suspects.tolist())
    assert suspects.size <= 9


def test_the_program_runs_on_state_from_before_the_eager_run() -> None:
    """Only what the function changes is copied; an input that it only reads is not."""
    w = jg.tensor(np.arange(4.0)).requires_grad_()
    x = jg.tensor(np.ones(4))

    def step(x: jg.Tensor) -> None:
        (w * x).sum().backward()
        with jg.no_grad():
            w.sub_(w.grad)

    run = jit(step)
    call = run._signature.take((x,), {})
    compiled = run.executable_for(call)
    kept = compiled.operands_before(call.leaves)
    live = compiled.operands(call.leaves)

    assert {id(source.key) for source in compiled.traced.sources} >= {id(w)}
    for source, copy, now in zip(compiled.traced.sources, kept, live, strict=True):
        assert np.shares_memory(copy.detach().numpy(), now.detach().numpy()) == (source.key is not w)


@pytest.mark.parametrize("changes_state", [False, True])
def test_kernels_compile_while_eager_runs_unless_state_is_at_stake(
    monkeypatch: pytest.MonkeyPatch, changes_state: bool
) -> None:
    """A program that fails must fail before the eager run has changed anything."""
    order: list[str] = []
    run = Executable.outputs
    monkeypatch.setattr(Executable, "outputs", lambda *given: order.append("program") or run(*given))
    state = jg.tensor(np.zeros(3))

    def f(x: jg.Tensor) -> jg.Tensor:
        if changes_state:
            state.add_(x)
        return x * 2.0

    compiled, x = jit(f, check="always"), jg.tensor(np.ones(3))
    compiled.lookup(x)
    compiled.eager = lambda x: order.append("function") or f(x)
    compiled(x)

    assert order == (["program", "function"] if changes_state else ["function", "program"])


def test_the_first_result_has_the_types_of_later_ones() -> None:
    """Eager execution gives arrays and numbers for what a program computes of them."""
    compiled = jg.jit(lambda a, k: {"b": [a * 2, a, k * 2, k], "a": (a.sum(), "text", a > 1)}, backend="python")
    results = [compiled(np.array([1.0, 2.0]), k) for k in (2.0, 3.0, 4.0)]

    leaves = [[type(x) for x in optree.tree_leaves(result)] for result in results]
    assert leaves[0] == leaves[1] == leaves[2]
    assert leaves[0] == [jg.Tensor, str, jg.Tensor, jg.Tensor, np.ndarray, float, float]
    assert [*results[0]] == ["b", "a"]
    assert [result["b"][2] for result in results] == [4.0, 6.0, 8.0]


def test_rounding_a_number_argument_to_an_int_decides() -> None:
    f = jg.jit(lambda x, k: x * round(k), backend="python")
    assert [f(jg.ones(2), k)[0].item() for k in (2.5, 2.25, 3.75, 1.5, 1.5)] == [2.0, 2.0, 4.0, 2.0, 2.0]
    assert f.cache_info().traces == 2
    assert jg.jit(lambda x, k: x * round(k, 1), backend="python")(jg.ones(2, dtype=jg.float64), 2.25)[0].item() == 2.2
