"""Short-time Fourier transforms and their inverses, as torch.stft and torch.istft."""

from __future__ import annotations

from typing import Any

from jitgrad.core.aval import real_dtype_of
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.functional import pad
from jitgrad.ops import fourier
from jitgrad.ops.arithmetic import divide, multiply, square
from jitgrad.ops.complex_numbers import view_as_real
from jitgrad.ops.complex_parts import complex, is_complex
from jitgrad.ops.creation import asarray, ones
from jitgrad.ops.movement import broadcast_to, cut, matrix_transpose, reshape
from jitgrad.ops.placement import beside
from jitgrad.ops.windows import fold, windows_along

_LEAST_ENVELOPE = 1e-11  # torch's


def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """The Fourier transforms [..., frequencies, frames] of windows of a signal [length] or signals [n, length].

    Frames of ``n_fft`` points begin every ``hop_length`` (``n_fft // 4``) points, with ``center`` half a frame earlier
    (the signal is padded by ``pad_mode``), and are multiplied with ``window`` [win_length], around which zeros stand.
    Of real signals half of the frequencies are given (``onesided``); ``return_complex=False`` has both parts in a last
    axis. Raises ArgumentError, ShapeError or DtypeError for what does not fit together.
    """
    x = asarray(input)
    hop, profile = _checked("stft", x, n_fft, hop_length, win_length, window)
    complex_input = is_complex(x) or is_complex(profile)
    half = not complex_input if onesided is None else onesided
    _check_forward(x, complex_input, half, return_complex)
    rows = reshape(x, (1, *x.shape)) if x.ndim == 1 else x
    if center:
        rows = reshape(pad(reshape(rows, (1, *rows.shape)), (n_fft // 2, n_fft // 2), pad_mode), (rows.shape[0], -1))
    if not 0 < n_fft <= rows.shape[1]:
        raise ArgumentError(f"stft: n_fft={n_fft} of {x.aval}: it must be between 1 and the {rows.shape[1]} points there are")
    frames = multiply(_framed(rows, n_fft, hop), profile)
    out = matrix_transpose(_transformed(frames, "ortho" if normalized else None, half))
    out = reshape(out, out.shape[1:]) if x.ndim == 1 else out
    return view_as_real(out) if return_complex is False else out


def _check_forward(x: Tensor, complex_input: bool, half: bool, return_complex: bool | None) -> None:
    if half and complex_input:
        raise ArgumentError("stft: the spectra of complex signals have no redundant half; leave out onesided")
    if return_complex is None and not complex_input:
        raise ArgumentError("stft: say return_complex=True, or False for both parts in a last axis")
    if x.ndim not in (1, 2):
        raise ShapeError(f"stft: expected a signal [length] or signals [n, length], got {x.aval}")


def _transformed(frames: Tensor, norm: str | None, half: bool) -> Tensor:
    """The spectra of ``frames``, all of their frequencies or half."""
    if half:
        return fourier.transform_real("stft", frames, None, (-1,), norm)
    return fourier.transform("stft", frames, None, (-1,), norm, inverse=False)


def _checked(
    what: str, x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Any
) -> tuple[int, Tensor]:
    """The distance of frames, and the window with zeros around it, of ``n_fft`` points."""
    if x.dtype.kind not in "fc":
        raise DtypeError(f"{what}: expected floating or complex numbers, got {x.aval}")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop <= 0 or not 0 < length <= n_fft:
        raise ArgumentError(f"{what}: n_fft={n_fft}, hop_length={hop}, win_length={length}: hop_length must be positive, and "
                            "win_length between 1 and n_fft")  # fmt: skip
    with beside(x):
        profile = ones(length, dtype=real_dtype_of(x.dtype)) if window is None else asarray(window)
    if profile.shape != (length,):
        raise ShapeError(f"{what}: the window must have win_length={length} points, got {profile.aval}")
    before = (n_fft - length) // 2
    return hop, profile if length == n_fft else pad(profile, (before, n_fft - length - before))


def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose :func:`stft`, with the same arguments, is nearest to ``input`` [..., frequencies, frames].

    D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier transform", 1984. ``length`` cuts
    the signal, or pads it with zeros.

    Raises:
        ShapeError, DtypeError: the input is no such transform.
        ArgumentError: the windows leave a point without weight (in a compiled function it is NaN or Inf).
    """
    x = asarray(input)
    if not is_complex(x) or x.ndim not in (2, 3):
        raise DtypeError(f"istft: expected complex [frequencies, frames] or [n, frequencies, frames], got {x.aval}")
    half = x.shape[-2] != n_fft if onesided is None else onesided
    if half and return_complex:
        raise ArgumentError("istft: half a spectrum is that of a real signal; leave out return_complex")
    if x.shape[-2] != (count := n_fft // 2 + 1 if half else n_fft) or not x.shape[-1]:
        raise ShapeError(f"istft: {x.aval} does not have the {count} frequencies of n_fft={n_fft}")
    hop, profile = _checked("istft", x, n_fft, hop_length, win_length, window)
    spectra = matrix_transpose(x if x.ndim == 3 else reshape(x, (1, *x.shape)))
    frames = _signals(spectra, n_fft, "ortho" if normalized else None, half)
    frames = frames if half or return_complex else frames.real
    total = _overlapped(multiply(frames, profile), hop)
    weight = _overlapped(broadcast_to(square(profile), (1, *frames.shape[1:])), hop)
    out = _part(total, weight, n_fft // 2 if center else 0, length)
    return out if x.ndim == 3 else reshape(out, out.shape[1:])


def _signals(spectra: Tensor, points: int, norm: str | None, half: bool) -> Tensor:
    """The frames with ``spectra``, which have all frequencies or half."""
    if half:
        return fourier.transform_to_real("istft", spectra, (points,), (-1,), norm)
    return fourier.transform("istft", spectra, None, (-1,), norm, inverse=True)


def _framed(rows: Tensor, points: int, hop: int) -> Tensor:
    """The frames [n, count, points] of ``rows`` [n, length] that begin every ``hop`` points."""
    if is_complex(rows):
        return complex(_framed(rows.real, points, hop), _framed(rows.imag, points, hop))
    return windows_along(rows, 1, points, hop)


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """The sums [n, length] of ``frames`` [n, count, points] that begin every ``hop`` points."""
    n, count, points = frames.shape
    length = points + hop * (count - 1)
    if is_complex(frames):
        return complex(_overlapped(frames.real, hop), _overlapped(frames.imag, hop))
    return reshape(fold(matrix_transpose(frames), (1, length), (1, points), stride=(1, hop)), (n, length))


def _part(total: Tensor, weight: Tensor, start: int, length: int | None) -> Tensor:
    """``total / weight`` from ``start`` to as far from its end, or ``length`` points of it."""
    end = total.shape[1] - start if length is None else min(start + length, total.shape[1])
    if end <= start:
        raise ArgumentError(f"istft: {total.shape[1]} points of overlapping frames leave none beyond their first half")
    weights = cut(weight, 1, start, end)
    if not current_interpreter.get().tracing and float(weights.detach().abs().min().item()) < _LEAST_ENVELOPE:
        raise ArgumentError("istft: the windows leave points without weight; take a smaller hop_length, or another window")
    out = divide(cut(total, 1, start, end), weights)
    missing = 0 if length is None else length - (end - start)
    return pad(out, (0, missing)) if missing > 0 else out
