"""Windows of signals as in SciPy and torch, and what short-time transforms refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.scipy.signal import windows as scipy_windows

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "general_hamming": (0.7,), "general_cosine": ([0.5, 0.3, 0.2],), "kaiser": (5.0,), "gaussian": (2.0,),
    "general_gaussian": (1.5, 2.0),
}  # fmt: skip
NAMES = [name for name in scipy_windows.__all__ if name != "get_window"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_are_scipys(name: str, sym: bool):
    theirs = pytest.importorskip("scipy.signal.windows")
    for points in (0, 1, 2, 3, 4, 5, 8, 9, 31):
        found = getattr(scipy_windows, name)(points, *PARAMETERS.get(name, ()), sym=sym).numpy()

        np.testing.assert_allclose(found, getattr(theirs, name)(points, *PARAMETERS.get(name, ()), sym=sym), atol=1e-12)


@pytest.mark.parametrize("window", ["hann", "ham", ("kaiser", 4.0), 8.0, ("tukey", 0.3), "rectangular"])
def test_windows_by_name_are_scipys(window: Any):
    theirs = pytest.importorskip("scipy.signal")

    np.testing.assert_allclose(scipy_windows.get_window(window, 11).numpy(), theirs.get_window(window, 11), atol=1e-12)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_of_frames_are_torchs(name: str):
    torch = pytest.importorskip("torch")
    for points in (0, 1, 2, 7, 8):
        for periodic in (True, False):
            found = getattr(jg, f"{name}_window")(points, periodic)
            expected = getattr(torch, f"{name}_window")(points, periodic)

            assert found.dtype == np.float32
            np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-6)


def test_a_spectrum_leads_back_to_its_signal():
    x = jg.tensor(np.random.default_rng(0).normal(size=(2, 100)))
    window = jg.hann_window(16, dtype=jg.float64)

    back = jg.jit(lambda x: jg.istft(jg.stft(x, 16, 4, window=window, return_complex=True), 16, 4, window=window, length=100))

    np.testing.assert_allclose(back(x).numpy(), x.numpy(), atol=1e-12)


def test_spectra_of_complex_signals_have_all_frequencies():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 64)) + 1j * rng.normal(size=(2, 64)), rng.normal(size=16)

    found = jg.stft(jg.tensor(x), 16, 5, window=jg.tensor(w), return_complex=True)
    expected = torch.stft(torch.tensor(x), 16, 5, window=torch.tensor(w), return_complex=True)

    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)
    back = jg.istft(found, 16, 5, window=jg.tensor(w), onesided=False, return_complex=True)
    np.testing.assert_allclose(
        back.numpy(), torch.istft(expected, 16, 5, window=torch.tensor(w), onesided=False, return_complex=True), atol=1e-12
    )


X = jg.ones(40)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jg.stft(X, 8), ArgumentError, "return_complex=True, or False"),
        (lambda: jg.stft(X.reshape(2, 4, 5), 4, return_complex=True), ShapeError, r"\[length\].*f32\[2,4,5\]"),
        (lambda: jg.stft(X, 64, return_complex=True, center=False), ArgumentError, "n_fft=64.*the 40 points"),
        (lambda: jg.stft(X, 8, window=jg.ones(5), return_complex=True), ShapeError, r"win_length=8 points, got f32\[5\]"),
        (lambda: jg.stft(X, 8, 0, return_complex=True), ArgumentError, "hop_length must be positive"),
        (lambda: jg.stft(jg.arange(40), 8, return_complex=True), DtypeError, "floating"),
        (lambda: jg.istft(X.reshape(5, 8), 8), DtypeError, "complex"),
        (lambda: jg.istft(X.reshape(4, 10) * 1j, 8), ShapeError, "does not have the 5 frequencies"),
        (lambda: jg.istft(X.reshape(5, 8) * 1j, 8, 8, window=jg.hann_window(8), center=False), ArgumentError, "without weight"),
        (lambda: jg.hann_window(-1), ArgumentError, "must be an int that is not negative, got -1"),
        (lambda: jg.signal.windows.gaussian(4, std=0.0), ArgumentError, "std must be positive"),
        (lambda: scipy_windows.get_window("hannn", 4), ArgumentError, "no window 'hannn'"),
    ],
)
def test_what_is_refused_says_why(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call()
