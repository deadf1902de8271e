"""Random tensors: generators, whose state is one tensor, and distributions."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from functools import cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from jitgrad.core.aval import Dtype, Shape, broadcast_shapes, normalize_shape
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import creating_on, creation_device, current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import ArgumentError, DtypeError, shown
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.state_locks import use_lock
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.device import cuda
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, astype, multiply, subtract
from jitgrad.ops.comparison import less
from jitgrad.ops.creation import asarray, clone, iota
from jitgrad.ops.gumbel_noise import noisy_chances
from jitgrad.ops.inplace import assign
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import expand_dims, slice, squeeze
from jitgrad.ops.philox import PHILOX_BITS
from jitgrad.ops.placement import beside, beside_operands, placing
from jitgrad.ops.random_numbers import BITS, NORMALS, UINT64, UNITS, NumberKind
from jitgrad.ops.read_ahead import LAST_COUNTER
from jitgrad.ops.reduce import argmax
from jitgrad.ops.rounding import remainder
from jitgrad.ops.sorting import argsort, topk

_NUMBERS = frozenset({int, float})
_MAX_KINDS = 32  # read-aheads of a generator; each has a window of some 64 KiB
_other_interpreter = current_interpreter.other
_drawing = fork_safe_lock()  # from reading a counter to advancing it: no two threads draw the same numbers


class Generator:
    """A stream of random numbers (Philox4x32-10), the same eager and compiled, for any number of threads.

    ``state`` is a uint64 tensor [key, counter], changed in place by every draw: a compiled function takes it as an
    input and writes it back, as it does with parameters. Threads that share a generator draw different numbers:
    they take turns, in compiled functions for the whole call.
    """

    _unguarded: ClassVar[tuple[str, ...]] = ("_ahead",)  # compiled functions compute their numbers

    def __init__(self, seed: int = 0) -> None:
        self.state: Tensor = _fresh_state(seed)
        use_lock(self.state, _drawing)
        self._ahead: dict[Any, Any] = {}  # read-aheads by the kind of numbers

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ahead": {}}

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of ``seed`` (any int, taken modulo 2**64) from its beginning."""
        assign(self.state, _fresh_state(seed))
        return self

    def get_state(self) -> Tensor:
        """A copy of ``state``, for :meth:`set_state`."""
        return clone(self.state)

    def set_state(self, state: Any) -> None:
        """Continue from a ``state`` of this or another generator."""
        new = asarray(state)
        if new.shape != (2,) or new.dtype != UINT64:
            raise ArgumentError(f"Generator.set_state: expected a state, which is a uint64 vector of 2, got {new.aval}")
        assign(self.state, new)

    def fork(self) -> Generator:
        """A generator with a stream of its own, whose key this one draws."""
        new = Generator()
        key = self.bits((1,))[0]
        assign(new.state, concat([key, multiply(key, 0)], 0))
        return new

    def bits(self, shape: Shape, per_element: int = 1) -> tuple[Tensor, ...]:
        """``per_element`` uint64 tensors of ``shape`` with random bits; advances the state."""
        if per_element == 1 and (known := self._known(shape, BITS)) is not None:
            return (known,)
        blocks = (prod(shape) + 1) // 2
        interpreter = current_interpreter.get()
        if interpreter.tracing:
            if (drawn := interpreter.draw(self, shape, per_element)) is not None:
                return drawn  # type: ignore[no-any-return]
            interpreter.generator_states.append(self.state)
        with _drawing:
            drawn = tuple(self._words(shape, k * blocks) for k in range(per_element))
            with creating_on(None):  # the state stays on the host, wherever the numbers are
                advance = multiply(iota((2,), None, UINT64), per_element * blocks)  # [0, blocks used]
            assign(self.state, add(self.state, advance))
        return drawn

    def _known(self, shape: Shape, kind: NumberKind) -> Tensor | None:
        """The next numbers of a ``kind`` from a window, with the state advanced; None where ops are to compute them."""
        with _drawing:
            state = self.state
            data = state._data
            if type(data) is not np.ndarray or data.dtype != UINT64 or not data.flags.writeable:
                return None
            if _other_interpreter() is not None or creation_device.get() is not None:
                return None
            key, counter = data.tolist()
            count = prod(shape)
            place = kind if kind.words == 1 else (kind, count)
            ahead = self._ahead.get(place)
            if ahead is None:
                if len(self._ahead) >= _MAX_KINDS:
                    self._ahead.clear()
                ahead = self._ahead[place] = kind.read_ahead(count)
            drawn = ahead.take(key, counter, shape, count)
            if drawn is None:
                if counter > LAST_COUNTER or count == 0:
                    return None
                drawn = kind.draw(key, counter, count).reshape(shape)
            data[1] = counter + kind.words * ((count + 1) // 2)
            state._storage.bump()
            return Tensor(drawn)

    def _words(self, shape: Shape, first_block: int) -> Tensor:
        key, counter = (squeeze(slice(self.state, ((k, 1, 1),)), 0) for k in (0, 1))
        if first_block:
            counter = add(counter, first_block)
        return apply_op(PHILOX_BITS, key, counter, iota(shape, None, UINT64))  # type: ignore[no-any-return]

    def rand(self, *shape: Any, dtype: Any = None) -> Tensor:
        """Uniform numbers in [0, 1); see :func:`jitgrad.rand`."""
        return rand(*shape, dtype=dtype, generator=self)

    def randn(self, *shape: Any, dtype: Any = None) -> Tensor:
        """Normal numbers; see :func:`jitgrad.randn`."""
        return randn(*shape, dtype=dtype, generator=self)

    def randint(self, low: int, high: Any = None, size: Any = None, *, dtype: Any = None) -> Tensor:
        """Integers in [low, high); see :func:`jitgrad.randint`."""
        return randint(low, high, size, dtype=dtype, generator=self)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, *, dtype: Any = None) -> Tensor:
        """Uniform numbers in [low, high); see :func:`jitgrad.uniform`."""
        return uniform(low, high, size, dtype=dtype, generator=self)

    def normal(self, mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, dtype: Any = None) -> Tensor:
        """Normal numbers of given mean and deviation; see :func:`jitgrad.normal`."""
        return normal(mean, std, size, dtype=dtype, generator=self)

    def bernoulli(self, p: Any, size: Any = None, *, dtype: Any = None) -> Tensor:
        """Ones with probability p, else zeros; see :func:`jitgrad.bernoulli`."""
        return bernoulli(p, size, dtype=dtype, generator=self)

    def randperm(self, n: int, *, dtype: Any = None) -> Tensor:
        """A random order of 0 .. n - 1; see :func:`jitgrad.randperm`."""
        return randperm(n, dtype=dtype, generator=self)

    def multinomial(self, p: Any, num_samples: int, replacement: bool = False) -> Tensor:
        """Classes drawn with given probabilities; see :func:`jitgrad.multinomial`."""
        return multinomial(p, num_samples, replacement, generator=self)

    def __repr__(self) -> str:
        return f"Generator(state={self.state!r})"


def _fresh_state(seed: int) -> Tensor:
    # a constant of the program: a generator made in a compiled function starts anew at each call
    return current_interpreter.get().constant(np.array([_as_key(seed), 0], UINT64))  # type: ignore[no-any-return]


def _as_key(seed: int) -> int:
    try:
        return operator.index(seed) % 2**64
    except TypeError:
        raise ArgumentError(f"a seed is an int, got {shown(seed)}") from None


default_generator: Generator = Generator(int.from_bytes(os.urandom(8), "little"))


def manual_seed(seed: int) -> Generator:
    """Restart the default generator at ``seed``; without it, every process draws other numbers."""
    return default_generator.manual_seed(seed)


cuda.seed_by(manual_seed)


# --- distributions -----------------------------------------------------------------------------------------------


@placing
def rand(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Uniform numbers in [0, 1), evenly spaced 2**-24 (float32) or 2**-53 (float64) apart.

    Args:
        shape: ints, or one tuple of ints.
        dtype: a floating dtype; the default one if omitted.
    """
    out_dtype = _float_dtype("rand", dtype)
    out = _drawn(generator, _shape("rand", shape), UNITS[out_dtype.itemsize])
    return out.requires_grad_() if requires_grad else out


def _drawn(generator: Generator | None, shape: Shape, kind: NumberKind) -> Tensor:
    source = generator or default_generator
    known = source._known(shape, kind)
    return kind.function(*source.bits(shape, kind.words)) if known is None else known


@placing
def randn(
    *shape: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, generator: Generator | None = None
) -> Tensor:
    """Numbers from the normal distribution with mean 0 and standard deviation 1.

    G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958: sqrt(-2 log u) cos(2 pi v).
    """
    out_dtype = _float_dtype("randn", dtype)
    out = _drawn(generator, _shape("randn", shape), NORMALS[out_dtype.itemsize])
    return out.requires_grad_() if requires_grad else out


@beside_operands
def uniform(
    low: Any = 0.0, high: Any = 1.0, size: Any = None, *, dtype: Any = None, generator: Generator | None = None
) -> Tensor:
    """Uniform numbers in [low, high); ``low`` and ``high`` may be tensors, and gradients flow to them.

    Rounding may give ``high`` itself where ``high - low`` is not a power of two, as in NumPy.
    """
    u = rand(_size("uniform", size, low, high), dtype=_dtype_of(dtype, low, high), generator=generator)
    if type(low) in _NUMBERS and type(high) in _NUMBERS and low == 0 and high == 1:
        return u
    width = high - low if type(high) is type(low) is float else subtract(high, low)
    return add(multiply(u, width), low)


@placing
@beside_operands
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers; gradients flow to ``mean`` and ``std`` if they are tensors."""
    z = randn(_size("normal", size, mean, std), dtype=_dtype_of(dtype, mean, std), generator=generator)
    if type(mean) in _NUMBERS and type(std) in _NUMBERS and mean == 0 and std == 1:
        return z
    return add(multiply(z, std), mean)


@beside_operands
def bernoulli(p: Any, size: Any = None, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """One with probability ``p``, else zero; by default of ``p``'s shape and floating dtype.

    Raises:
        ArgumentError: ``p`` is a Python number outside [0, 1].
    """
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli: a probability is between 0 and 1, got {p}")
    out_dtype = check_supported("bernoulli", dtype) if dtype is not None else _dtype_of(None, p)
    precise = out_dtype if out_dtype.kind == "f" and out_dtype.itemsize >= 4 else np.dtype(np.float32)
    u = rand(_size("bernoulli", size, p), dtype=precise, generator=generator)
    return astype(less(u, p), out_dtype)


@placing
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers in [low, high), of dtype int64 unless ``dtype`` says otherwise; a floating one holds whole numbers.

    ``randint(high, size)`` and ``randint(low, high, size)`` as in torch, ``randint(low, high)`` one number.
    64 random bits modulo the range: no number is likelier than another by more than ``(high - low) / 2**64``.

    Raises:
        ArgumentError: the range is empty, or ``dtype`` cannot hold it.
    """
    if isinstance(high, Iterable):
        low, high, size = 0, low, high if size is None else size
    elif high is None:
        low, high = 0, low
    start, stop = operator.index(low), operator.index(high)
    out_dtype = np.dtype(np.int64) if dtype is None else check_supported("randint", dtype)
    if out_dtype.kind == "b":
        raise DtypeError(f"randint: dtype {out_dtype} is no dtype of numbers; compare rand(...) with a probability")
    least, largest = _limits(out_dtype if out_dtype.kind in "iu" else np.dtype(np.int64))
    if not least <= start < stop <= largest + 1:
        raise ArgumentError(f"randint: [{start}, {stop}) is empty or does not fit {out_dtype}")
    (bits,) = (generator or default_generator).bits(_shape("randint", () if size is None else (size,)))
    return _in_range(bits, start, stop, out_dtype)


@cache
def _limits(dtype: Dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


@composed
def _in_range(bits: Tensor, start: int, stop: int, dtype: Dtype) -> Tensor:
    """Random 64-bit numbers as integers in [start, stop)."""
    if stop - start < 2**64:
        bits = remainder(bits, stop - start)
    # two's complement: adding the start modulo 2**64 is right for negative numbers too
    whole = add(bits, start % 2**64)
    return astype(whole if dtype.kind in "iu" else astype(whole, np.dtype(np.int64)), dtype)


@placing
def randperm(n: int, *, dtype: Any = None, device: Any = None, generator: Generator | None = None) -> Tensor:
    """The integers 0 .. n - 1 in random order: the order of n random 64-bit keys."""
    if n < 0:
        raise ArgumentError(f"randperm: n must not be negative, got {n}")
    out_dtype = np.dtype(np.int64) if dtype is None else check_supported("randperm", dtype)
    (bits,) = (generator or default_generator).bits((n,))
    order = argsort(bits)
    return order if order.dtype == out_dtype else astype(order, out_dtype)


def multinomial(p: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """int64 [..., num_samples]: classes drawn with probabilities in proportion to ``p`` [..., classes].

    The largest of log(p) plus Gumbel noise is such a draw, and the largest few are one without replacement (J. I.
    Yellott, "The relationship between Luce's choice axiom, Thurstone's theory", 1977).

    Raises:
        ArgumentError: more samples than classes, without replacement.
    """
    weights = asarray(p)
    weights = weights if weights.dtype.kind == "f" else astype(weights, get_default_dtype())
    classes, count = weights.shape[-1], operator.index(num_samples)
    if count < 1 or (count > classes and not replacement):
        raise ArgumentError(f"multinomial: cannot draw {count} of {classes} classes without replacement")
    shape = (*weights.shape[:-1], count, classes) if replacement else weights.shape
    with beside(weights):
        u = rand(shape, dtype=np.float64, generator=generator)
    keys = noisy_chances(expand_dims(weights, -2) if replacement else weights, u)
    return argmax(keys, -1) if replacement else topk(keys, count).indices


# --- arguments ---------------------------------------------------------------------------------------------------


def _shape(what: str, shape: tuple[Any, ...]) -> Shape:
    if len(shape) == 1 and (type(shape[0]) is tuple or isinstance(shape[0], Iterable)):
        (shape,) = shape
    if type(shape) is tuple and all([type(n) is int and n >= 0 for n in shape]):
        return shape
    sizes = normalize_shape(what, shape)
    if any(n < 0 for n in sizes):
        raise ArgumentError(f"{what}: negative size in shape {sizes}")
    return sizes


def _size(what: str, size: Any, *parameters: Any) -> Shape:
    """``size``, or the shape that the parameters broadcast to."""
    if size is not None:
        return _shape(what, (size,))
    return broadcast_shapes(what, [asarray(x).aval for x in parameters])


def _dtype_of(dtype: Any, *parameters: Any) -> Dtype:
    """``dtype``, or that of the first floating tensor of the parameters, or the default dtype."""
    if dtype is not None:
        return check_supported("random", dtype)
    for x in parameters:
        if isinstance(x, (Tensor, np.ndarray)) and x.dtype.kind == "f" and not (isinstance(x, Tensor) and x.aval.weak):
            return x.dtype
    return get_default_dtype()


def _float_dtype(what: str, dtype: Any) -> Dtype:
    floating = get_default_dtype() if dtype is None else check_supported(what, dtype)
    if floating.kind != "f":
        raise DtypeError(f"{what}: dtype {floating} is no floating dtype")
    return floating
