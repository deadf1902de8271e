"""What an ejected module takes, changes and returns, and what it refuses."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, EjectError
from tests.compiled import assert_same
from tests.eject.ejecting import Eject, tensor, text_of

pytestmark = pytest.mark.usefixtures("in_python")
Pair = namedtuple("Pair", "left right")
SCALE = jg.tensor([1.0, 2.0, 3.0])


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


def test_containers(eject: Eject) -> None:
    def f(p: Any, q: Any, pair: Any, layer: Any) -> Any:
        return {"sum": [p["w"] * q[0] + layer.bias, (pair.left,)], "pair": Pair(pair.right * 2.0, 3), "none": None}

    x = tensor(3)
    args = {"w": x, "b": x + 1.0}, [x * 2.0, x], Pair(x - 1.0, x * 3.0), Layer(x, x * 5.0)
    _, ejected = eject(f, *args)
    found = ejected(*args)
    assert type(found["pair"]).__name__ == "Pair"
    assert found["sum"][1][0] is args[2].left
    assert_same(found["sum"][0], f(*args)["sum"][0])


def test_keywords_and_several_positional_arguments(eject: Eject) -> None:
    def f(*xs: Any, scale: float, mode: str = "plus") -> Any:
        return xs[0] * scale + xs[1] if mode == "plus" else xs[0]

    x, y = tensor(3), tensor(3, seed=1)
    _, ejected = eject(f, x, y, scale=2.5, mode="plus")
    assert_same(ejected(x, y, scale=4.0, mode="plus"), x * 4.0 + y)
    with pytest.raises(ValueError, match=r"mode is 'minus'; this module is for 'plus'\. Eject the function again"):
        ejected(x, y, scale=4.0, mode="minus")


def test_one_tensor_twice(eject: Eject) -> None:
    x = tensor(3)
    _, ejected = eject(lambda x, y: x * y, x, x)
    assert_same(ejected(x, x), x * x)


def test_state_is_a_keyword_argument(eject: Eject) -> None:
    files, ejected = eject(lambda x: x * SCALE, tensor(3))
    assert list(files.state) == ["SCALE"]
    assert files.state["SCALE"] is SCALE
    assert_same(ejected(tensor(3), SCALE=SCALE + 1.0), tensor(3) * (SCALE + 1.0))


def test_results_that_are_arguments_or_state(eject: Eject) -> None:
    x = tensor(3, 3)
    files, ejected = eject(lambda x: (x, x.T, x[1:], SCALE, SCALE + x), x)
    found = ejected(x, **files.state)
    assert found[0] is x
    assert found[3] is SCALE
    assert_same(found[1:3], (x.T, x[1:]))


def test_changed_arguments_get_their_values_in_place(eject: Eject) -> None:
    def f(x: Any, v: Any) -> None:
        x[1:3] = v
        x *= 2.0

    x, v = tensor(6, 5), tensor(2, 5)
    before = x.clone()
    _, ejected = eject(f, x, v)
    assert_same(x, before)  # ejecting changes nothing
    assert ejected(x, v) is None
    f(before, v)
    assert_same(x, before)


def test_assigned_data_leaves_the_old_memory_to_others(eject: Eject) -> None:
    def pair() -> tuple[Any, Any]:
        return jg.tensor([1.0, 2.0], requires_grad=True), jg.tensor([3.0, 4.0], requires_grad=True)

    def step(w: Any, v: Any, x: Any) -> Any:
        w.data = w.data * 0.5 + x
        new = v.data * 2.0 + x
        v.data = new
        return new

    _, ejected = eject(step, *pair(), jg.ones(2))
    (w, v), (eager_w, eager_v) = pair(), pair()
    for _ in range(3):
        kept = [x.data for x in (w, v, eager_w, eager_v)]
        new, expected = ejected(w, v, jg.ones(2)), step(eager_w, eager_v, jg.ones(2))
        assert not new.requires_grad
        new.add_(1.0), expected.add_(1.0)  # the memory of v from now on
        found = [x.tolist() for x in (w, v, new, *kept[:2])]
        assert found == [x.tolist() for x in (eager_w, eager_v, expected, *kept[2:])]


def test_a_detached_result_is_a_tensor_of_its_own(eject: Eject) -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)
    _, ejected = eject(lambda w: w.detach(), w)
    found = ejected(w)
    assert found is not w and not found.requires_grad
    found.add_(1.0)
    assert w.tolist() == [2.0, 3.0]


def test_what_is_only_written(eject: Eject) -> None:
    def f(x: Any, y: Any) -> None:
        y[...] = x * 2.0

    x, y = tensor(3), tensor(3, seed=1)
    _, ejected = eject(f, x, y)
    ejected(x, y)
    assert_same(y, x * 2.0)


def test_an_array_of_another_shape_is_refused(eject: Eject) -> None:
    _, ejected = eject(lambda x: x * 2.0, tensor(3, 4))
    message = r"x is float32\[3, 5\]; this module is for float32\[3, 4\]\. Convert it, or eject the function again"
    with pytest.raises(ValueError, match=message):
        ejected.module.run(np.zeros((3, 5), np.float32))


def test_an_array_of_another_dtype_is_refused(eject: Eject) -> None:
    _, ejected = eject(lambda x: x * 2.0, tensor(3))
    with pytest.raises(ValueError, match=r"x is float64\[3\]; this module is for float32\[3\]"):
        ejected.module.run(np.zeros(3))


def test_what_is_no_array_is_refused(eject: Eject) -> None:
    _, ejected = eject(lambda x: x * 2.0, tensor(3))
    with pytest.raises(TypeError, match=r"x is a list; this module takes an array float32\[3\]"):
        ejected.module.run([1.0, 2.0, 3.0])


def doubled(x: Any, y: Any) -> None:
    x *= y


def test_changed_arrays_are_in_c_order(eject: Eject) -> None:
    _, ejected = eject(doubled, tensor(3, 4), tensor(4))
    with pytest.raises(ValueError, match="x is changed in place: pass a writeable array in C order"):
        ejected.module.run(np.zeros((4, 3), np.float32).T, np.zeros(4, np.float32))


def test_changed_arrays_share_no_memory(eject: Eject) -> None:
    _, ejected = eject(doubled, tensor(3, 4), tensor(4))
    x = np.ones((3, 4), np.float32)
    with pytest.raises(ValueError, match="x is changed in place and shares memory with y: pass a copy"):
        ejected.module.run(x, x[0])


def test_gradients_do_not_flow_through(eject: Eject) -> None:
    x = tensor(3).requires_grad_()
    _, ejected = eject(lambda x: x * 2.0, x)
    with pytest.raises(ArgumentError, match=r"Eject jg\.value_and_grad of the function, or call it under jg\.no_grad"):
        ejected(x)
    with jg.no_grad():
        assert_same(ejected(x), x.detach() * 2.0)


def test_it_cannot_be_traced(eject: Eject) -> None:
    _, ejected = eject(lambda x: x * 2.0, tensor(3))
    with pytest.raises(jg.errors.JitgradError, match="runs on arrays and cannot be traced: call it outside @jit functions"):
        jg.jit(lambda x: ejected(x) + 1.0)(tensor(3))


@pytest.mark.parametrize("path", ["kernels.txt", "no-name.py", "kernels"])
def test_the_path_names_a_module(path: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"the path names a Python module, such as 'kernels\.py'"):
        jg.jit(lambda x: x * 2.0).eject(tmp_path / path, tensor(3))


class Power:
    """State of an opaque op."""

    exponent = 3


def test_what_needs_a_class_of_the_user_is_refused(tmp_path: Path) -> None:
    power = Power()
    cube = jg.custom_op(lambda x: x**power.exponent, vjp=jg.no_gradient)
    with pytest.raises(EjectError, match="reads 'power', a Power, which cannot be written down"):
        jg.jit(lambda x: cube(x) + 1.0).eject(tmp_path / "cube.py", tensor(3))


def test_tensors_that_a_function_keeps_outside_are_refused(tmp_path: Path) -> None:
    losses: list[Any] = []
    state = {"h": jg.zeros((3,))}

    def storing(x: Any) -> Any:
        losses.append(x.sum())
        return x * 2.0

    def recurrent(x: Any) -> Any:
        state["h"] = jg.tanh(state["h"] + x)
        return state["h"].sum()

    for function, place in ((storing, "closure cell `losses`"), (recurrent, r"closure cell `state\['h'\]`")):
        with pytest.raises(EjectError, match=f"keeps state in {place}, which a module does not have"):
            jg.jit(function).eject(tmp_path / "kept.py", tensor(3))
    assert losses == []


def test_an_opaque_op_is_written_out(eject: Eject) -> None:
    offset = 2.5
    moved = jg.custom_op(lambda x: np.sort(x) + offset, vjp=jg.no_gradient)
    files, ejected = eject(lambda x: moved(x) * 2.0, tensor(5))
    assert_same(ejected(tensor(5)), moved(tensor(5)) * 2.0)
    assert "np.sort(x) + offset" in text_of(files)


def test_options_of_loading(eject: Eject, tmp_path: Path) -> None:
    files, _ = eject(lambda x: x * 2.0, tensor(3))
    with pytest.raises(ArgumentError, match=r"load_ejected\(check='no'\): expected one of recorded, off"):
        jg.load_ejected(files.path, check="no")
    with pytest.raises(ArgumentError, match=r"there is no file .*other\.py; f\.eject"):
        jg.load_ejected(tmp_path / "other.py")
