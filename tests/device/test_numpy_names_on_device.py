"""jitgrad.numpy on the CUDA device: what its functions make beside their operands is where these are."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import DeviceError
from tests.agreement import leaves
from tests.numpy_names.later_names import LATER, LATER_SMOOTH
from tests.numpy_names.table import CASES as FIRST
from tests.numpy_names.table import SMOOTH as FIRST_SMOOTH
from tests.numpy_names.test_against_numpy import called

pytestmark = pytest.mark.usefixtures("cuda")

# What makes tensors of its own beside its operands, or takes lists; the emulator is too slow to run everything each time.
QUICK = """
    isin average digitize nonzero argwhere flatnonzero extract compress take insert diff ediff1d gradient polyval polyint
    histogram histogram_bin_edges logaddexp2 linspace array logspace geomspace fmax r_ interp
""".split()


def placed(x: Any, device: str) -> Any:
    if isinstance(x, numpy.ndarray) and x.dtype.kind not in "OSU":
        return jg.tensor(x, device=device)
    return type(x)(placed(part, device) for part in x) if type(x) in (tuple, list) else x


def results(call: Callable[..., Any], args: Any, device: str) -> list[Any]:
    """The results on the host; those that are tensors have to be on ``device``, if an operand is."""
    given = placed(args, device)
    outs = leaves(call(*given))
    if any(isinstance(x, jg.Tensor) for x in leaves(given)):
        assert {x.device for x in outs if isinstance(x, jg.Tensor)} <= {device}
    return [x.detach().cpu().numpy() if isinstance(x, jg.Tensor) else x for x in outs]


def first_of_each(cases: list[Any]) -> list[Any]:
    """One case of each name in QUICK."""
    return list({case[0]: case for case in reversed(cases) if case[0] in QUICK}.values())


CASES = FIRST + LATER
GRADIENTS = [case for case in FIRST_SMOOTH + LATER_SMOOTH if case[0] != "c_"]  # which joins an array made on the host


def assert_same_values(case: Any) -> None:
    name, args, keywords = case
    call = attrgetter(name)(np)
    for x, y in zip(
        *[results(lambda *xs: call(*xs, **keywords), args, device) for device in ("cuda", "cpu")], strict=True
    ):
        rtol = 1e-5 if numpy.asarray(y).dtype == numpy.float32 else 1e-10
        numpy.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12, err_msg=called(case))


def assert_same_gradients(case: Any) -> None:
    name, function, array = case

    def gradient(device: str) -> Any:
        x = jg.tensor(array, device=device, requires_grad=True)
        sum(jg.abs(y * y).sum() for y in leaves(function(np, x)) if y.requires_grad).backward()
        assert x.grad is not None and x.grad.device == device, name
        return x.grad.cpu().numpy()

    numpy.testing.assert_allclose(gradient("cuda"), gradient("cpu"), rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("case", [pytest.param(case, id=case[0]) for case in first_of_each(CASES)])
def test_values(case: Any) -> None:
    assert_same_values(case)


@pytest.mark.parametrize("case", [pytest.param(case, id=case[0]) for case in first_of_each(GRADIENTS)])
def test_gradients(case: Any) -> None:
    assert_same_gradients(case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # since NumPy 2.5
def test_all_values_and_gradients() -> None:
    for case in CASES:
        assert_same_values(case)
    for case in GRADIENTS:
        assert_same_gradients(case)


def test_arrays_of_the_host_join_those_of_the_device() -> None:
    x = jg.tensor([1.0, 2.0], device="cuda")

    found = [jg.stack([x, numpy.ones(2, numpy.float32)]), np.append(x, [3.0]), np.average(numpy.eye(2), 1, weights=x)]

    assert [y.device for y in found] == ["cuda"] * 3
    assert [y.tolist() for y in found] == [[[1, 2], [1, 1]], [1, 2, 3], [1 / 3, 2 / 3]]
    with pytest.raises(DeviceError, match="is on cuda, and another"):
        np.append(x, jg.ones(2))  # a tensor of the host stays where it is


def test_positions_of_elements_lead_back_to_them() -> None:
    x = jg.tensor([[0.0, 3.0], [4.0, 0.0]], device="cuda")

    assert x[jg.nonzero(x)].tolist() == [3, 4]
    assert jg.nonzero(x, as_tuple=False).device == "cuda"


def test_derivatives_in_a_direction() -> None:
    x = jg.tensor([0.5, 2.0], device="cuda")

    out, tangent = jg.jvp(lambda x: (x * x).sum(), (x,), (jg.ones_like(x),))

    assert (out.item(), tangent.item(), tangent.device) == (4.25, 5.0, "cuda")


@pytest.mark.parametrize("draw", [lambda p: jg.bernoulli(p), lambda p: jg.uniform(p, 1.0), lambda p: jg.normal(p, p)])
def test_random_numbers_are_where_their_parameters_are(draw: Callable[[Any], Any]) -> None:
    def drawn(device: str) -> Any:
        jg.manual_seed(3)
        out = draw(jg.full((6,), 0.5, device=device))
        assert out.device == device
        return out.cpu().numpy()

    numpy.testing.assert_allclose(drawn("cuda"), drawn("cpu"), rtol=1e-6)
