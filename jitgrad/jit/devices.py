"""Where a @jit function runs: on the device of its tensors, which must all be in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.tracer import Trace
from jitgrad.core.errors import DeviceError
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.jit.signature import Call


def device_of_arguments(call: Call) -> str:
    """Where a trace of ``call`` begins: the device of an argument on one, else the host."""
    places = (x.device for x in call.leaves if isinstance(x, Tensor) and type(x._data) is not Donated)
    return next((place for place in places if place != "cpu"), "cpu")


class TracePlace(NamedTuple):
    """The device that a traced function runs on, "cpu" or "cuda", and where each outside tensor was."""

    device: str
    outside: tuple[tuple[InputSource, str], ...]


def place_of(trace: Trace, leaves: Sequence[Any], describe: Callable[[InputSource], str]) -> TracePlace:
    """Where the traced function runs.

    Numbers, NumPy arrays, tensors of one number and the states of generators are copied to it.

    Raises:
        DeviceError: other tensors are elsewhere.
    """
    tensors = [(s, s.resolve(leaves)) for s in trace.sources if s.kind in (SourceKind.ARGUMENT, SourceKind.TENSOR)]
    tensors = [(s, x) for s, x in tensors if isinstance(x, Tensor)]
    outside = tuple([(s, x.device) for s, x in tensors if s.kind is SourceKind.TENSOR])
    elsewhere = [(s, x) for s, x in tensors if x.device != trace.device and x.ndim]
    elsewhere = [(s, x) for s, x in elsewhere if not any(x is state for state in trace.generator_states)]
    if elsewhere:
        source, x = elsewhere[0]
        other = next((f"{describe(s)} {t.aval} is" for s, t in tensors if t.device == trace.device), "it makes tensors")
        raise DeviceError(
            f"@jit function {trace.name!r}: {describe(source)} {x.aval} is on {x.device}, and {other} on {trace.device}. Move "
            f'one of them, with .to("{trace.device}") or .to("{x.device}")'
        )
    return TracePlace(trace.device, outside)
