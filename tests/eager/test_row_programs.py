"""Runs of ops over the rows of arrays become one call of machine code, with NumPy's bits."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd import lines
from jitgrad.backends import eager_rows
from jitgrad.backends.llvm.pairwise_sum import compile_row_sums
from jitgrad.core.tensor import Tensor
from jitgrad.eager import buffer_pool, row_programs
from jitgrad.eager.large_arrays import LARGE
from jitgrad.eager.row_programs import RowProgram, RowScope
from jitgrad.nn import functional as F

Case = Callable[[Tensor, Tensor, Tensor], Tensor]  # of rows, of others like them, and of one row
CASES: dict[str, Case] = {
    "softmax": lambda x, y, w: x.softmax(-1),
    "log_softmax": lambda x, y, w: x.log_softmax(-1),
    "logsumexp": lambda x, y, w: x.logsumexp(-1),
    "layer_norm": lambda x, y, w: F.layer_norm(x, x.shape[-1:], w, w + 1),
    "rms_norm": lambda x, y, w: F.rms_norm(x, x.shape[-1:], w),
    "var": lambda x, y, w: x.var(axis=-1),
    "std": lambda x, y, w: x.std(axis=-1),
    "normalize": lambda x, y, w: F.normalize(x, dim=-1),
    "cosine_similarity": lambda x, y, w: F.cosine_similarity(x, y, dim=-1),
    "smooth_l1_loss": lambda x, y, w: F.smooth_l1_loss(x, y),
    "of logits": lambda x, y, w: F.binary_cross_entropy_with_logits(x, y),
    "cross_entropy": lambda x, y, w: _cross_entropy(x),
    "smoothed": lambda x, y, w: _cross_entropy(x, label_smoothing=0.1),
}
SHAPES = [(3, 5), (2, 2), (10, 10), (130, 9), (2, 1500), (2, 3, 7), (1, 6), (6, 1), (7,), (0, 4)]


def _cross_entropy(x: Tensor, **options: Any) -> Tensor:
    x = x.reshape(-1, x.shape[-1])
    return F.cross_entropy(x, jg.tensor(np.arange(len(x)) % x.shape[-1]), reduction="none", **options)


def _bits(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Equal for equal bits, and for any two NaNs."""
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x).view(f"u{x.itemsize}")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RowProgram]]:
    """The programs that were compiled: each at its first call."""
    programs: list[RowProgram] = []

    def maker(program: RowProgram) -> Any:
        if len(program.steps) > 1:  # no reduction by itself
            programs.append(program)
        return eager_rows.compile_rows(program)

    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    monkeypatch.setattr(row_programs, "_USES", 0)
    monkeypatch.setattr(row_programs._Registered, "maker", staticmethod(maker))
    row_programs.kernel_of.cache_clear()
    yield programs
    row_programs.kernel_of.cache_clear()


def _often(case: Case, arrays: list[np.ndarray[Any, Any]], calls: int = 6) -> list[np.ndarray[Any, Any]]:
    """The result of ``case`` and its gradients, after so many calls that they run as one line."""
    for _ in range(calls):
        leaves = [jg.asarray(a).requires_grad_() for a in arrays]
        out = case(*leaves)
        out.backward(jg.cos(jg.arange(out.size, dtype=out.dtype)).reshape(out.shape))
    return [out.detach().numpy(), *[x.grad.numpy() for x in leaves if x.grad is not None]]


def _check(case: Case, arrays: list[np.ndarray[Any, Any]]) -> None:
    with jg.disable_jit():
        expected = _often(case, arrays)
    for a, b in zip(_often(case, arrays), expected, strict=True):
        np.testing.assert_array_equal(_bits(a), _bits(b))


def _arrays(shape: tuple[int, ...], dtype: str) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(len(shape))
    return [random.normal(0, 3, s).astype(dtype) for s in (shape, shape, shape[-1:])]


@pytest.mark.parametrize("name", CASES)
def test_rows_have_the_bits_of_numpy(name: str, made: list[RowProgram]) -> None:
    for dtype in ("float32", "float64"):
        for shape in SHAPES:
            _check(CASES[name], _arrays(shape, dtype))
    assert made


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "cross_entropy"])
def test_large_arrays_are_computed_in_one_pass_into_the_pool(name: str, made: list[RowProgram]) -> None:
    arrays = _arrays((700, 640), "float32")
    assert arrays[0].nbytes >= LARGE
    _check(CASES[name], arrays)
    assert made
    if name == "softmax":
        results = [jg.asarray(arrays[0]).softmax(-1) for _ in range(6)]  # the last ones as one line
        assert buffer_pool.POOL.holds(results[-1].numpy().base)


def test_operands_without_axes_are_taken(made: list[RowProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    bind = eager_rows.bind_arrays

    def watched(*args: Any) -> Any:
        run = bind(*args)

        def call(*arrays: Any) -> bool:
            taken.append(run(*arrays))
            return taken[-1]

        return call

    monkeypatch.setattr(eager_rows, "bind_arrays", watched)
    x, y = (a[:6, :7] for a in _arrays((8, 9), "float32")[:2])
    _often(lambda x, y: jg.huber_loss(x, y) * 2.0, [x.copy(), y.copy()])  # a gradient without axes arrives
    assert any(program.numbers < sum(v.scope is RowScope.NUMBER for v in program.values[: program.inputs]) for program in made)
    assert taken[-1]
    _check(lambda x, y: jg.huber_loss(x, y) * 2.0, [x.copy(), y.copy()])


def test_large_temporaries_are_given_up(made: list[RowProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    right = lines.Line.function
    monkeypatch.setattr(lines.Line, "function", lambda self, *a: texts.append("\n".join(self.text)) or right(self, *a))
    x = jg.asarray(_arrays((700, 641), "float32")[0])
    for _ in range(6):
        x.softmax(-1)
    steps, forward = texts
    assert steps.count(" = None") == 2  # the shifted rows and their powers
    assert forward.count(" = None") == 0
    assert made


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "logsumexp"])
def test_undefined_and_infinite_elements(name: str, made: list[RowProgram]) -> None:
    x, y, w = _arrays((9, 12), "float32")
    for row, value in enumerate([np.nan, np.inf, -np.inf, 1e38, -1e38, 1e-42, -0.0]):
        x[row, row::3] = value
    x[7], x[8] = -np.inf, np.inf
    _check(CASES[name], [x, y, w])
    assert made


def test_operands_that_are_not_contiguous(made: list[RowProgram]) -> None:
    x, y, w = _arrays((9, 14), "float32")
    for array in (np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x[::-1], x[:, ::-1], np.broadcast_to(x[:1], x.shape)):
        _check(CASES["softmax"], [array, y, w])
        _check(CASES["layer_norm"], [array, y, w[::-1]])
    assert made


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_a_sum_is_one_number(name: str, made: list[RowProgram]) -> None:
    _check(lambda x, y, w: CASES[name](x, y, w).sum(), _arrays((9, 13), "float32"))
    _check(lambda x, y, w: CASES[name](x, y, w).sum(0), _arrays((9, 13), "float32"))
    assert made


def test_other_dtypes_are_computed_by_numpy(made: list[RowProgram]) -> None:
    for dtype in ("float16", "int64"):
        x = jg.tensor([[1, 2, 3], [3, 2, 2]], dtype=dtype)
        for _ in range(6):
            out = x.softmax(-1)
        np.testing.assert_allclose(out.numpy().sum(-1), 1, atol=1e-3)
    assert all(v.dtype != np.float16 for program in made for v in program.values)


def test_a_softmax_is_one_call_and_its_gradient_another(made: list[RowProgram]) -> None:
    _often(CASES["softmax"], _arrays((4, 61), "float32"))
    names = [[step.op.name for step in program.steps] for program in made]
    assert names[0] == ["max", "isfinite", "where", "subtract", "exp", "sum", "divide"]
    assert len(names) == 2
    assert names[1].count("sum") == 1
    assert [v.scope for v in made[0].values if v.scope is RowScope.COLUMN] == []

    made.clear()
    _often(CASES["softmax"], _arrays((400, 7), "float32"))  # programs do not depend on sizes
    assert made == []


def test_sums_over_rows_end_a_group(made: list[RowProgram]) -> None:
    _often(CASES["layer_norm"], _arrays((4, 62), "float32"))
    backward = made[-1]
    assert [backward.values[k].scope for k in backward.outputs].count(RowScope.COLUMN) >= 1
    read = {k for program in made for step in program.steps for k in step.operands if program is backward}
    columns = {step.out for step in backward.steps if backward.values[step.out].scope is RowScope.COLUMN}
    assert not read & columns


def test_a_kernel_is_compiled_once_calls_have_come_back(made: list[RowProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_programs, "_USES", 20)
    x = jg.tensor(_arrays((5, 11), "float32")[0])
    for _ in range(10):
        x.softmax(-1)
    assert not made
    for _ in range(30):
        x.softmax(-1)
    assert len(made) == 1


def test_other_backends_compile_no_rows(made: list[RowProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    _often(CASES["softmax"], _arrays((4, 63), "float32"))
    for name, value in (("JITGRAD_BACKEND", "python"), ("JITGRAD_DISABLE", "1")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert eager_rows.compile_rows(made[0]) is None
    monkeypatch.setattr(eager_rows, "numpy_loop", lambda _ufunc, _dtype: None)
    assert eager_rows.compile_rows(made[0]) is None


def test_threads_have_scratch_memory_of_their_own(made: list[RowProgram]) -> None:
    arrays = [np.random.default_rng(k).normal(size=(64, 2000)).astype("f4") for k in range(4)]
    _often(CASES["softmax"], [arrays[0], arrays[0], arrays[0][0]])
    expected = [jg.tensor(a).softmax(-1).numpy() for a in arrays]
    wrong: list[int] = []

    def run(k: int) -> None:
        x = jg.tensor(arrays[k])
        wrong.extend([k for _ in range(20) if not np.array_equal(x.softmax(-1).numpy(), expected[k])])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made
    assert not wrong


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_rows_have_the_bits_of_numpy(dtype: str) -> None:
    code = compile_row_sums(np.dtype(dtype))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    random = np.random.default_rng(0)
    for n in (*range(1, 700), 1000, 1023, 1024, 1031, 4096, 5003, 30_001):
        x, y = (random.normal(size=(3, n)) * 10.0 ** random.integers(-3, 3, (3, n))).astype(dtype), np.empty(3, dtype)
        x[2] = -0.0
        table = (ctypes.c_int64 * 3)(x.ctypes.data, y.ctypes.data, n)
        run(table, 0, 3)
        np.testing.assert_array_equal(_bits(y), _bits(x.sum(1)), err_msg=str(n))
