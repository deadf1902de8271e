"""What looks at compiled functions knows complex numbers: comparison, replay, anomalies, ejected modules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.errors import AnomalyError
from tests.complex_numbers.spectral_programs import PROGRAMS

Z = jg.tensor(np.array([1 + 1j, 2 - 1j]))


def test_compare_and_replay() -> None:
    function, arguments = PROGRAMS["spectral_derivative"]
    compiled = jg.jit(jg.value_and_grad(function))

    assert "agrees with eager" in str(jg.compare(jg.jit(lambda z: jnp.exp(z) * z), Z))
    assert "dft" in str(compiled.replay(0, *map(jg.tensor, arguments)))


def test_anomalies_name_the_op() -> None:
    with jg.detect_anomaly(), pytest.raises(AnomalyError, match=r"divide.*made the first"):
        jg.jit(lambda z: jnp.sum(jnp.abs(z / (z - z))))(Z)


def test_ejected_modules(tmp_path: Path) -> None:
    function, arguments = PROGRAMS["convolution"]
    tensors = [jg.tensor(x) for x in arguments]
    path = tmp_path / "module.py"
    jg.jit(jg.value_and_grad(function)).eject(path, *tensors)

    value, grad = jg.load_ejected(path)(*tensors)

    expected, gradient = jg.value_and_grad(function)(*tensors)
    np.testing.assert_allclose(value.numpy(), expected.numpy(), 1e-12)
    np.testing.assert_allclose(grad.numpy(), gradient.numpy(), 1e-10)
