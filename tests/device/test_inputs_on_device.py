"""Odd inputs on the CUDA device: shapes, strides, special values, mixed dtypes, and what is refused."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda_target.emulated_device import emulated_device
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DeviceError, OutOfMemoryError
from jitgrad.testing import sample_operands
from tests.compiled import leaves
from tests.ops.test_registry import SCALAR, accepts

RNG = np.random.default_rng(5)
Function = Callable[..., Any]


def on_host(x: Any) -> np.ndarray[Any, Any]:
    return x.detach().cpu().numpy()


def assert_same(function: Function, *arrays: Any) -> None:
    """Eager and compiled, ``function`` gives on the device what compiled code gives on the host."""
    expected = leaves(jg.jit(function, backend="cpu", check="off")(*map(jg.tensor, arrays)))
    for run in (function, jg.jit(function, check="off")):
        found = run(*[jg.tensor(x, device="cuda") for x in arrays])
        for x, y in zip([found] if isinstance(found, jg.Tensor) else found, expected, strict=True):
            assert x.device == "cuda"
            array = on_host(x)
            assert (array.shape, array.dtype) == (y.shape, y.dtype)
            np.testing.assert_array_equal(array, y)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -3e38, 1.5], np.float32)

SAME_BITS: dict[str, tuple[Function, list[Any]]] = {
    "a number": (lambda x: jg.exp(x) * 2.0 + 1.0, [np.float32(0.3)]),
    "numbers of two dtypes": (lambda x, y: x * y, [np.float32(0.3), np.int64(4)]),
    "empty": (lambda x: (jg.tanh(x) * 2.0, x + x.T), [normal(0, 0)]),
    "empty sums": (lambda x: (x.sum(axis=0), x.sum(axis=1), x.sum(), jg.concat([x, x])), [normal(0, 4)]),
    "broadcast": (lambda x, y: jg.tanh(x) * y, [normal(4, 1, 5), normal(3, 1)]),
    "broadcast to": (lambda x: jg.broadcast_to(x, (4, 3)) * 2.0, [normal(3)]),
    "strided": (lambda x: (x[::2, 1:] * 2.0, x.T + 1.0), [normal(6, 7)]),
    "negative strides": (lambda x: (jg.flip(x) * 2.0, x[::-1, ::-2] + 1.0), [normal(6, 7)]),
    "a view of a view": (lambda x: jg.exp(x[1:].T[::-1][:, ::2]), [normal(6, 7)]),
    "special values": (lambda x: (jg.exp(x), jg.tanh(x), x * x, jg.isnan(x), jg.sqrt(x), x > 0), [SPECIAL]),
    "special pairs": (lambda x, y: (jg.maximum(x, y), jg.minimum(x, y), jg.where(x > y, x, y)), [SPECIAL, SPECIAL[::-1].copy()]),
    "largest special value": (lambda x: (x.max(), x.min(), x[3:].max(), (x > 0).any()), [SPECIAL]),
    "float32 with float64": (lambda x, y: x + y, [normal(5), RNG.normal(size=5)]),
    "ints with floats": (lambda x, y: x * y - 1, [np.arange(-2, 3), normal(5)]),
    "bytes with long ints": (lambda x, y: (x + y, x // 3, y % 4), [np.arange(5, dtype=np.int8), np.arange(5) - 2]),
    "bools": (lambda x, y: (x & y, x | ~y, x + 1, jg.where(x, 1.0, 2.0)), [np.arange(3) > 0, np.arange(3) > 1]),
    "float16": (lambda x: x * x + 1.0, [normal(9).astype(np.float16)]),
    "unsigned": (lambda x: (x >> 2, x * 3, ~x), [np.arange(250, 256, dtype=np.uint8)]),
    "an index": (lambda x, k: (x[k], x[jg.asarray([0, 2]).to(x.device)]), [normal(4, 3), np.array([3, 0, 3])]),
}  # fmt: skip


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("name", SAME_BITS)
def test_the_bits_are_those_of_the_host(name: str) -> None:
    function, arrays = SAME_BITS[name]
    assert_same(function, *arrays)


@pytest.mark.usefixtures("cuda")
def test_every_elementwise_op_computes_the_bits_of_the_host() -> None:
    ops = [op for op in SCALAR if accepts(op, "f")]
    operands = [x for op in ops for x in sample_operands(op, np.random.default_rng(0), (5, 7), np.float32)]

    def run(*xs: Any) -> Any:
        rest = iter(xs)
        return [apply_op(op, *[next(rest) for _ in op.operands], **op.sample_attrs) for op in ops]

    expected = jg.jit(run, backend="cpu", check="off")(*map(jg.tensor, operands))
    found = jg.jit(run, check="off")(*[jg.tensor(x, device="cuda") for x in operands])
    assert len(ops) > 60
    for op, x, y in zip(ops, found, expected, strict=True):
        assert on_host(x).tobytes() == y.numpy().tobytes(), op


@pytest.mark.usefixtures("cuda")
def test_arguments_that_are_views_are_read_where_they_are() -> None:
    f = jg.jit(lambda x, y: jg.tanh(x) * y, check="off")
    x = jg.tensor(normal(6, 7), device="cuda")
    for x_part, y_part in ((x[::2], x[::-2]), (x.T[1:3], x.T[::-1][:2]), (x[2], x[:, 0][1])):
        expected = jg.jit(f.eager, backend="cpu", check="off")(x_part.cpu(), y_part.cpu()).numpy()
        np.testing.assert_array_equal(on_host(f(x_part, y_part)), expected)
        np.testing.assert_array_equal(on_host(f.eager(x_part, y_part)), expected)


@pytest.mark.usefixtures("cuda")
def test_gradients_of_odd_inputs() -> None:
    def gradients(device: str) -> list[Any]:
        x = jg.tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6), device=device, requires_grad=True)
        scale = jg.tensor(0.5, device=device, requires_grad=True)
        loss = (jg.exp(x[::-2, 1:]) * scale).sum() + (x.T @ x).sum() + jg.where(x > 0, jg.log(x), x).sum()
        loss.backward()
        assert x.grad is not None and scale.grad is not None
        return [on_host(x.grad), on_host(scale.grad)]

    for found, expected in zip(gradients("cuda"), gradients("cpu"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.usefixtures("cuda")
def test_parts_are_changed_in_place() -> None:
    expected = normal(5, 6)
    x = jg.tensor(expected, device="cuda")
    x[::2, ::-1] *= 2.0
    x[1] = 7.0
    x[jg.tensor([3], device="cuda")] = jg.zeros((1, 6), device="cuda")
    x.T[0] += jg.ones(5, device="cuda")

    expected[::2, ::-1] *= 2.0
    expected[1] = 7.0
    expected[3] = 0.0
    expected[:, 0] += 1.0
    np.testing.assert_array_equal(on_host(x), expected)


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.usefixtures("cuda")
def test_tensors_in_different_places_are_named() -> None:
    x, y = jg.tensor(normal(3), device="cuda"), jg.tensor(normal(3))

    with pytest.raises(DeviceError, match=r"add: a tensor f32\[3\] is on cuda, and another f32\[3\] is on the host"):
        x + y
    with pytest.raises(DeviceError, match=r"argument 1 f32\[3\] is on cpu, and argument 0 f32\[3\] is on cuda\. Move"):
        jg.jit(lambda x, y: x + y)(x, y)
    layer = jg.nn.Linear(3, 2)
    with pytest.raises(DeviceError, match=r"layer\.weight f32\[2,3\] is on cpu"):
        jg.jit(lambda x: layer(x))(x)


def test_a_compiled_function_says_that_memory_is_full_and_what_is_live() -> None:
    with emulated_device(total=1 << 20):
        kept = jg.ones((400, 400), device="cuda")
        with pytest.raises(OutOfMemoryError, match=r"The largest of 1: f32\[400,400\]\. Free tensors"):
            jg.jit(lambda x: jg.exp(x) @ x, check="off")(kept)
        del kept
        gc.collect()  # the error's frames hold it
        assert jg.ones((400, 400), device="cuda").sum().item() == 160_000


def test_memory_of_functions_that_do_not_run_goes_when_memory_runs_out() -> None:
    """Frames keep temporaries for the next call, and graphs hold their addresses."""
    with emulated_device(total=1 << 20):
        x = jg.ones((40_000,), device="cuda")

        @jg.jit
        def f(x: Any) -> Any:
            for _ in range(2):
                x = jg.cumsum(x, axis=0) / 40_000.0
            return x.sum()

        before = [f(x).item() for _ in range(4)]
        kept = [x + float(k) for k in range(5)]  # with what the frame has, these do not fit
        del kept
        assert [f(x).item() for _ in range(4)] == before
