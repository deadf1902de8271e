"""Library ops that kernels of their own compute on a device: at indices, and of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.ptxas import assemble, find_ptxas
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.indexed import find_access
from jitgrad.backends.cuda_target.lines import find_lines
from jitgrad.backends.cuda_target.windows import find_windows
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY
from jitgrad.nn import functional as F
from tests.agreement import leaves

pytestmark = pytest.mark.usefixtures("cuda")
RNG = np.random.default_rng(0)
X, SRC, IMAGES = RNG.normal(size=(7, 5)), RNG.normal(size=(300, 5)), RNG.normal(size=(2, 3, 6, 7))
ROWS, COLUMNS, MANY = np.array([[0, 6, -7], [3, 3, 2]]), np.array([[4, 0, -1], [1, 1, 2]]), RNG.integers(-7, 7, 300)

def with_nan(x: Any) -> Any:
    return jg.where(x > 0.5, np.nan, x)


COLUMN = np.zeros(5, np.int64)
CASES: dict[str, Callable[..., Any]] = {
    "take": lambda x, src, i, j, many, images: jg.take(x, i, axis=0),
    "take columns": lambda x, src, i, j, many, images: jg.take(x, j, axis=1),
    "index": lambda x, src, i, j, many, images: (x[i, j], x[:, j], x[many]),
    "gather": lambda x, src, i, j, many, images: jg.gather(x, 0, jg.broadcast_to(jg.abs(many[:9, None]) % 7, (9, 5))),
    "gather columns": lambda x, src, i, j, many, images: jg.take_along_axis(x[:2], jg.abs(j), 1),
    "index_add": lambda x, src, i, j, many, images: jg.index_add(x, 0, many, src),
    "index_add columns": lambda x, src, i, j, many, images: jg.index_add(x, 1, j[0], src[:7, :3]),
    "scatter_add": lambda x, src, i, j, many, images: jg.scatter_add(x, 0, jg.abs(many[:, None] + 0 * COLUMN) % 7, src),
    "scatter_reduce": lambda x, src, i, j, many, images: [
        jg.scatter_reduce(y, 0, jg.abs(many[:, None] + 0 * COLUMN) % 7, with_nan(src) if nan else src, how, include_self=own)
        for y, nan in ((x, False), (with_nan(x), True)) for how in ("amax", "amin") for own in (True, False)
    ],
    "index_put": lambda x, src, i, j, many, images: jg.index_put(x, (many,), src),
    "index_put adds": lambda x, src, i, j, many, images: jg.index_put(x, (i, j), src[:2, :3], True),
    "counts": lambda x, src, i, j, many, images: jg.index_add(jg.zeros_like(x[:, 0]), 0, many, src[:, 0]),
    "one_hot": lambda x, src, i, j, many, images: jg.one_hot(jg.abs(i), 8),
    "unfold": lambda x, src, i, j, many, images: F.unfold(images, (3, 2), (1, 2), (1, 0), (2, 1)),
    "cumsum": lambda x, src, i, j, many, images: (jg.cumsum(src, 0), jg.cumsum(images, 1), jg.cumsum(many, 0), jg.cumsum(i, -1)),
    "argmax": lambda x, src, i, j, many, images: (jg.argmax(src, 0), jg.argmin(images, 2), jg.argmax(many)),
    "argmin of NaN": lambda x, src, i, j, many, images: (jg.argmin(with_nan(x), 1), jg.argmax(with_nan(x))),
    "searchsorted": lambda x, src, i, j, many, images: [
        jg.searchsorted(jg.sort(edges), values, side) for side in ("left", "right")
        for edges, values in ((x[:, 0], src), (x[0], x[0]), (with_nan(x)[0], with_nan(x)), (jg.abs(many), i))
    ],
    "fold": lambda x, src, i, j, many, images: F.fold(F.unfold(images, (3, 2), 1, 1, (2, 1)), (6, 7), (3, 2), 1, 1, (2, 1)),
}


def arguments(dtype: str, device: str) -> list[Any]:
    arrays = [X.astype(dtype), SRC.astype(dtype), ROWS, COLUMNS, MANY, IMAGES.astype(dtype)]
    return [jg.tensor(a, device=device) for a in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_the_host(name: str, dtype: str) -> None:
    f = CASES[name]
    expected = f(*arguments(dtype, "cpu"))
    compiled = jg.jit(f, check="off")
    on_device = arguments(dtype, "cuda")

    for found in (compiled(*on_device), f(*on_device)):
        for x, y in zip(leaves(found), leaves(expected), strict=True):
            assert x.device == "cuda"
            np.testing.assert_array_equal(x.cpu().numpy(), y.numpy())
    host = {op for op in ("argsort",) if name == "searchsorted"}
    lines = [line for line in str(compiled.explain(*on_device)).splitlines() if "by the host" in line]
    assert all(any(op in line for op in host) for line in lines)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("one_hot", "argmax", "argmin of NaN", "searchsorted")])
def test_gradients_are_those_of_the_host(name: str) -> None:
    def gradients(device: str) -> list[Any]:
        xs = [x.requires_grad_() if x.dtype.kind == "f" else x for x in arguments("float64", device)]
        outs = CASES[name](*xs)
        sum((out * out).sum() for out in leaves(outs) if out.dtype.kind == "f").backward()
        return [x.grad.cpu().numpy() for x in xs if x.grad is not None]

    for ours, theirs in zip(gradients("cuda"), gradients("cpu"), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_dtypes_that_are_only_copied() -> None:
    index = jg.tensor([2, 0, 2], device="cuda")
    for dtype in ("bool", "int8", "float16", "uint64"):
        x = jg.tensor([1, 0, 1], dtype=dtype, device="cuda")
        assert jg.take(x, index, axis=0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float16", "int8", "int16", "uint8", "uint16", "uint32", "uint64"])
def test_sums_at_indices_of_small_dtypes_have_the_bits_of_numpy(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, v = ((rng.random(n) * 100).astype(dtype) for n in (5, 400))
    places = rng.integers(-5, 5, 400)
    expected = x.copy()
    np.add.at(expected, places, v)  # float16 rounds after each, integers wrap around
    add = jg.jit(lambda x, i, v: jg.index_add(x, 0, i, v), check="off")
    args = [jg.tensor(a, device="cuda") for a in (x, places, v)]

    assert add(*args).cpu().numpy().tobytes() == expected.tobytes()
    assert jg.index_add(args[0], 0, args[1], args[2]).cpu().numpy().tobytes() == expected.tobytes()
    assert "by a kernel" in str(add.explain(*args))


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint64"])
@pytest.mark.parametrize("how", ["amax", "amin"])
def test_extremes_at_indices_of_small_dtypes_are_those_of_the_host(how: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    arrays = (rng.random(5) * 50).astype(dtype), rng.integers(0, 5, 40), (rng.random(40) * 100).astype(dtype)
    reduce = jg.jit(lambda x, i, v: jg.scatter_reduce(x, 0, i, v, how), check="off")
    args = [jg.tensor(a, device="cuda") for a in arrays]

    expected = jg.scatter_reduce(jg.tensor(arrays[0]), 0, jg.tensor(arrays[1]), jg.tensor(arrays[2]), how)
    assert reduce(*args).cpu().numpy().tobytes() == expected.numpy().tobytes()
    assert "by the host" not in str(reduce.explain(*args))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16", "uint64", "bool"])
def test_integer_powers_with_known_exponents_are_kernels(dtype: str) -> None:
    x = np.array([-3, -1, 0, 1, 2, 7, 11, 127]).astype(dtype)
    powers = jg.jit(lambda x: [x**n for n in (1, 2, 3, 5, 31, 64)], check="off")
    on_device = jg.tensor(x, device="cuda")

    for found, n in zip(powers(on_device), (1, 2, 3, 5, 31, 64), strict=True):
        expected = jg.tensor(x) ** n
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.cpu().numpy(), expected.numpy())
    assert "by the host" not in str(powers.explain(on_device))


MIXED = [("float32", "float64"), ("float64", "float16"), ("int32", "float64"), ("float32", "complex64")]


@pytest.mark.parametrize("dtypes", MIXED)
def test_products_of_two_dtypes_are_computed_by_cublas(dtypes: tuple[str, str]) -> None:
    """NumPy converts an operand itself, so the host computed such products, between two copies."""
    shapes = (3, 5), (2, 5, 4)
    x, y = (jg.tensor(RNG.normal(size=s) * 4, device="cuda").to(d) for d, s in zip(dtypes, shapes, strict=True))
    f = jg.jit(lambda x, y: x @ y, check="off")

    for found in (f(x, y), x @ y):
        expected = x.cpu() @ y.cpu()
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    assert "by cuBLAS" in str(f.explain(x, y)) and "by the host" not in str(f.explain(x, y))


def test_an_index_out_of_bounds_is_an_error_when_a_value_is_read() -> None:
    x, good, bad = (jg.tensor(v, device="cuda") for v in (X, [0, 1], [1, 9]))
    take = jg.jit(lambda x, i: jg.take(x, i, axis=0) * 2.0, check="off")
    hot = jg.jit(lambda i: jg.one_hot(i, 3), check="off")
    take(x, good), hot(good)
    for f, args, word in ((take, (x, bad), "take"), (hot, (bad,), "check_classes"), (jg.take, (x, bad, 0), "take")):
        result = f(*args)
        with pytest.raises(IndexError, match=rf"{word} of .*: an index is out of bounds"):
            result.cpu()
        assert x.sum().item() == pytest.approx(X.sum())  # the error is told once
    jg.index_add(x, 0, bad, jg.zeros(2, 5, dtype="float64", device="cuda"))
    with pytest.raises(IndexError, match="index_add"):
        jg.cuda.synchronize()


def no_host(step: Any, *args: Any) -> None:
    before = [step(*args).item() for _ in range(3)]
    assert before[-1] < before[0]
    assert "by the host" not in str(step.explain(*args))


def test_training_a_transformer_needs_no_op_of_the_host() -> None:
    embedding, block = nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    head = nn.Linear(8, 11)
    model = nn.ModuleList([embedding, block, head]).to("cuda")
    optimizer = jg.optim.Adam(model.parameters(), lr=0.01)

    @jg.jit
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(head(block(embedding(x))).reshape(-1, 11), y.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    ids = jg.tensor(RNG.integers(0, 11, (2, 6)), device="cuda")
    no_host(step, ids[:, :-1], ids[:, 1:])


def test_training_a_convolutional_network_needs_no_op_of_the_host() -> None:
    layers = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2, stride=2)
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 3)).to("cuda")
    optimizer = jg.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    @jg.jit
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    images = jg.tensor(RNG.normal(size=(4, 1, 8, 8)).astype(np.float32), device="cuda")
    no_host(step, images, jg.tensor([0, 2, 1, 2], device="cuda"))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_their_kernels_need_no_local_memory(architecture: str) -> None:
    real, index = Aval((7, 5), np.dtype(np.float32)), Aval((9,), np.dtype(np.int64))
    windows = {"kernel": (3, 2), "stride": (1, 1), "dilation": (1, 1)}
    calls = [
        find_access(REGISTRY["take"], [real, index], {"axis": 0}),
        find_access(REGISTRY["index_get"], [real, index, index], {"axes": (0, 1)}),
        find_access(REGISTRY["index_add"], [real, index, Aval((9, 5), real.dtype)], {"axis": 0}),
        find_access(REGISTRY["check_classes"], [index], {"count": 3}),
        find_windows(REGISTRY["unfold"], [real], windows),
        find_lines(REGISTRY["cumulative_sum"], [real], {"axis": 0, "reverse": True}),
        find_lines(REGISTRY["argmin"], [real], {"axis": None}),
        find_lines(REGISTRY["searchsorted"], [Aval((9,), real.dtype), real], {"side": "left"}),
        find_windows(REGISTRY["fold"], [Aval((3, 2, 4, 4), real.dtype)], {**windows, "shape": (6, 5)}),
    ]
    for call in calls:
        assert call is not None
        code = DeviceCode(call.source, "kernel", Capability(8, 0), {})
        assert ".local" not in code.ptx
        if find_ptxas() is not None:
            (usage,) = assemble([code._found[0]], architecture)
            assert usage.local == 0 and usage.registers <= 64


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_at_indices_and_running_sums_need_no_op_of_the_host(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    x, y = [(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype) for shape in ((5, 3), (4, 3))]
    rows, places = np.array([4, 0, 4, -1]), rng.integers(-5, 5, (4, 3))
    calls = {
        "take": (lambda x, _y, r, _p: jg.take(x, r, axis=0), x[rows]),
        "gather": (lambda x, _y, _r, p: jg.gather(x, 0, p % 5), np.take_along_axis(x, places % 5, 0)),
        "index_add": (lambda x, y, r, _p: jg.index_add(x, 0, r, y), _added(x, (rows,), y)),
        "scatter_add": (lambda x, y, _r, p: jg.scatter_add(x, 0, p % 5, y), _added(x, (places % 5, np.arange(3)), y)),
        "cumulative_sum": (lambda x, _y, _r, _p: jg.cumulative_sum(x, axis=0), np.cumsum(x, axis=0)),
        "reversed": (lambda x, _y, _r, _p: jg.flip(jg.cumulative_sum(jg.flip(x, axis=1), axis=1), axis=1),
                     np.flip(np.cumsum(np.flip(x, 1), 1), 1)),
    }  # fmt: skip
    given = [jg.tensor(array, device="cuda") for array in (x, y, rows, places)]
    for name, (f, expected) in calls.items():
        compiled = jg.jit(f, check="off")
        for result in (compiled(*given), f(*given)):
            np.testing.assert_array_equal(result.cpu().numpy(), expected, err_msg=name)
        assert "by the host" not in str(compiled.explain(*given)), name


def _added(x: np.ndarray[Any, Any], index: Any, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = x.copy()
    np.add.at(result, index, y)
    return result
