"""torch.nn.utils.rnn: batches of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.comparison import less, where
from jitgrad.ops.creation import asarray, iota
from jitgrad.ops.joining import pad, stack
from jitgrad.ops.movement import cut, reshape, swapaxes
from jitgrad.ops.operand import contents_of
from jitgrad.ops.placement import beside
from jitgrad.ops.subscript import get_item

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence(NamedTuple):
    """Sequences for ``RNN``, ``GRU`` and ``LSTM``, which take each to its own end.

    Unlike torch's, it holds the padded tensor, [length, batch, ...], and the lengths [batch], in their given order.
    """

    padded: Tensor
    lengths: Tensor

    def mask(self) -> Tensor:
        """bool[length, batch]: which steps belong to a sequence."""
        with beside(self.padded):
            return less(iota((self.padded.shape[0], 1), 0), self.lengths)


def pad_sequence(
    sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences [length, ...] as one tensor [longest, batch, ...], or [batch, longest, ...] with ``batch_first``."""
    given = [asarray(x) for x in sequences]
    if not given or any(not x.ndim or x.shape[1:] != given[0].shape[1:] for x in given) or padding_side not in ("right", "left"):
        raise ArgumentError(
            "pad_sequence: expected tensors that differ in their first axis only, and padding_side 'right' or 'left', got "
            f"{', '.join(str(x.aval) for x in given) or 'none'} and {shown(padding_side)}"
        )
    longest = max(x.shape[0] for x in given)
    rows = []
    for x in given:
        missing = longest - x.shape[0]
        widths = [(0, missing) if padding_side == "right" else (missing, 0)] + [(0, 0)] * (x.ndim - 1)
        rows.append(pad(x, widths, constant_values=padding_value) if missing else x)
    return stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences [length, ...] of a padded tensor. The lengths must be known while a function is traced."""
    x = asarray(padded_sequences)
    by_sequence = x if batch_first else swapaxes(x, 0, 1)
    return [get_item(by_sequence, (k, slice(0, n))) for k, n in enumerate(_known("unpad_sequence", lengths))]


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """The sequences of a padded tensor [length, batch, ...] (or with ``batch_first`` [batch, length, ...]).

    Raises:
        ArgumentError: a length is not between 1 and that of the tensor, or, with ``enforce_sorted``, they increase. Of
            lengths that are traced, or on a device, neither is looked at.
    """
    x = asarray(input)
    padded = swapaxes(x, 0, 1) if batch_first else x
    with beside(padded):
        counts = reshape(asarray(lengths), (-1,))
    if counts.dtype.kind not in "iu" or counts.shape != padded.shape[1:2]:
        raise ShapeError(f"pack_padded_sequence: expected {padded.shape[1]} integer lengths, got {counts.aval}")
    if not isinstance(lengths, Tensor) or (counts.device == "cpu" and not current_interpreter.get().tracing):
        known = [int(n) for n in np.asarray(lengths).reshape(-1)]
        if min(known) < 1 or max(known) > padded.shape[0] or (enforce_sorted and known != sorted(known, reverse=True)):
            order = ", the longest first (or pass enforce_sorted=False)" if enforce_sorted else ""
            raise ArgumentError(f"pack_padded_sequence: lengths {shown(known)} must lie in 1 to {padded.shape[0]}{order}")
    return PackedSequence(padded, counts)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded tensor, with ``padding_value`` after each sequence, and the lengths.

    It is as long as the tensor that was packed, or ``total_length``.
    """
    mask = sequence.mask()
    x = sequence.padded
    wide = reshape(mask, (*mask.shape, *[1] * (x.ndim - 2)))
    out = where(wide, x, padding_value)
    if total_length is not None:
        if total_length < x.shape[0]:
            known = max(_known("pad_packed_sequence", sequence.lengths))
            if total_length < known:
                raise ArgumentError(f"pad_packed_sequence: total_length={total_length} is less than the longest, {known}")
        more = [(0, max(0, total_length - x.shape[0]))] + [(0, 0)] * (x.ndim - 1)
        out = pad(cut(out, 0, 0, min(total_length, x.shape[0])), more, constant_values=padding_value)
    return (swapaxes(out, 0, 1) if batch_first else out), sequence.lengths


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences [length, ...] for a recurrent layer."""
    lengths = [asarray(x).shape[0] for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences [length, ...]. The lengths must be known while a function is traced."""
    return unpad_sequence(packed_sequences.padded, packed_sequences.lengths)


def _known(what: str, lengths: Any) -> list[int]:
    return [int(n) for n in contents_of(lengths, what).reshape(-1)]
