"""Runs the sample inputs of torch's op database with torch and with jitgrad, and says where the two differ."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import jitgrad as jg
from jitgrad.autograd.backward import gradients
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import zeros_like
from tests.oracles.torch_calls import UNIQUE_PARTS, Function, our_function

SAMPLES = 60  # of one op and one dtype; spread evenly over those of the database
TOLERANCES = {torch.float64: (1e-9, 1e-9), torch.float32: (2e-4, 2e-5), torch.int64: (1e-5, 1e-5)}
# Of these, only shapes and dtypes can agree.
RANDOM = frozenset(
    "bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric "
    "log_normal multinomial new_empty new_empty_strided nn.functional.alpha_dropout nn.functional.dropout "
    "nn.functional.dropout2d nn.functional.dropout3d nn.functional.feature_alpha_dropout nn.functional.gumbel_softmax "
    "nn.functional.rrelu normal rand_like randint randint_like randn randn_like uniform".split()
)


@dataclass(frozen=True)
class Failure:
    """One sample on which jitgrad and torch differ: how (``refuses``, ``differs`` or ``gradient``), and the call."""

    op: str
    how: str
    message: str
    call: str

    def __str__(self) -> str:
        return f"{self.op} {self.how}: {self.message}\n    of {self.call}"


@dataclass
class Leaves:
    """The floating tensors of one sample that want a gradient, ours beside torch's."""

    ours: list[Tensor] = field(default_factory=list)
    theirs: list[Any] = field(default_factory=list)


def full_name(op: Any) -> str:
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else str(op.name)


def ops_with_our_name() -> dict[str, Any]:
    """The ops of the database that are floating or integer functions, and whose name jitgrad has."""
    known = [op for op in op_db if torch.float64 in op.dtypes or torch.int64 in op.dtypes]
    return {full_name(op): op for op in known if our_function(op.name, op.variant_test_name) is not None}


# --- samples -----------------------------------------------------------------------------------------------------


def converted(value: Any, leaves: Leaves) -> Any:
    """``value``, an argument of a torch function, as the same argument of ours."""
    if isinstance(value, torch.Tensor):
        ours = Tensor(value.detach().numpy(force=True).copy())
        if value.requires_grad:
            ours.requires_grad_()
            leaves.ours.append(ours)
            leaves.theirs.append(value)
        return ours
    if isinstance(value, torch.dtype):
        return np.dtype(str(value).removeprefix("torch."))
    if isinstance(value, torch.memory_format):
        return getattr(jg, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (list, tuple)):
        parts = [converted(part, leaves) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {name: converted(part, leaves) for name, part in value.items()}
    return value


def samples(op: Any, dtype: Any, wants_gradient: bool, first: int | None = None) -> list[Any]:
    """At most ``SAMPLES`` of the database's sample inputs, or of the ``first`` few, which are made sooner than all."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # not op.sample_inputs, which formats the stack for every sample
        every = list(islice(op.sample_inputs_func(op, "cpu", dtype, wants_gradient), first))
    step = max(1.0, len(every) / SAMPLES)
    return [every[int(i * step)] for i in range(int(len(every) / step))]


def written(sample: Any) -> str:
    """A sample as one would write the arguments, tensors as dtype and shape."""
    parts = [_short(part) for part in (sample.input, *sample.args)]
    return ", ".join([*parts, *(f"{name}={_short(part)}" for name, part in sample.kwargs.items())])


def _drops(op: Any, sample: Any) -> bool:
    """Whether the call drops random elements."""
    if op.name == "nn.functional.multi_head_attention_forward":
        return bool(sample.args[9]) and bool(sample.kwargs.get("training", True))
    return bool(sample.kwargs.get("dropout_p", 0) > 0)


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_short, value))}]"
    return repr(value)


# --- comparison --------------------------------------------------------------------------------------------------


def flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in flat(part)]
    return [result]


def array(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().numpy(force=True)
    return value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)


def difference(ours: Sequence[Any], theirs: Sequence[Any], dtype: Any, *, values: bool = True) -> str:
    """How the results differ, in words; empty where they are equal as far as rounding of ``dtype`` allows."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, torch has {len(theirs)}"
    for place, (x, y) in enumerate(zip(ours, theirs)):
        if x is None and y is None:
            continue
        if isinstance(x, Tensor) != isinstance(y, torch.Tensor):
            return f"result {place} is a {type(x).__name__}, torch's a {type(y).__name__}"
        if isinstance(y, (torch.Size, torch.dtype)):
            continue
        if problem := _array_difference(array(x), array(y), dtype, values):
            return f"result {place}: {problem}"
    return ""


def _array_difference(x: Any, y: Any, dtype: Any, values: bool) -> str:
    if x.shape != y.shape:
        return f"shape {x.shape}, torch has {y.shape}"
    # integers become float64 here (as in NumPy), torch's default dtype there
    if x.dtype != y.dtype and not (dtype == torch.int64 and x.dtype.kind == "f" and y.dtype.kind == "f"):
        return f"dtype {x.dtype}, torch has {y.dtype}"
    relative, absolute = TOLERANCES[dtype]
    if not values or np.allclose(x, y, rtol=relative, atol=absolute, equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        apart = np.abs(x.astype(np.float64) - y.astype(np.float64)) if x.dtype.kind == "f" else x != y
    worst = np.unravel_index(np.argmax(np.where(np.isnan(apart), np.inf, apart)), x.shape)
    return f"value {x[worst]} at {tuple(map(int, worst))}, torch has {y[worst]}"


# --- one op ------------------------------------------------------------------------------------------------------


def failures(op: Any) -> Iterator[Failure]:
    """What differs on the samples of ``op``: values in three dtypes, gradients in float64."""
    for dtype in (torch.float64, torch.float32, torch.int64):
        wants_gradient = dtype == torch.float64 and op.supports_autograd and not op.name.endswith("_")
        if dtype in op.dtypes:
            for sample in samples(op, dtype, wants_gradient):
                failure = one_failure(op, sample, dtype)
                if failure is not None:
                    yield failure


def one_failure(op: Any, sample: Any, dtype: Any, compiled: bool = False) -> Failure | None:
    """How one sample fails, if it does; ``compiled`` runs ours under ``jg.jit``."""
    leaves = Leaves()
    dtype = torch.float32 if "float32[" in written(sample) else dtype  # the least precise tensor decides
    x, args, keywords = converted((sample.input, sample.args, sample.kwargs), leaves)
    unique = UNIQUE_PARTS.get(op.name, flat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about its own plans
        expected = flat(unique(op(sample.input, *sample.args, **sample.kwargs)))
    smooth = [y for y in expected if isinstance(y, torch.Tensor) and y.requires_grad and not y.is_complex()]
    random = op.name in RANDOM or _drops(op, sample)
    wanted = bool(leaves.ours) and bool(smooth) and not random
    cotangents = [np.linspace(0.5, 1.5, y.numel(), dtype=array(y).dtype).reshape(y.shape) for y in smooth if wanted]

    def fail(how: str, message: str) -> Failure:
        return Failure(full_name(op), how, message, written(sample))

    named = our_function(op.name, op.variant_test_name)
    assert named is not None

    def function(*args: Any, **keywords: Any) -> Any:
        return unique(named(*args, **keywords))

    places = [place for place, y in enumerate(expected) if any(y is z for z in smooth)] if wanted else []
    run = _run_compiled if compiled else _run
    with np.errstate(all="ignore"):
        try:
            found, found_gradients = run(function, (x, args, keywords), leaves.ours, places, [Tensor(c) for c in cotangents])
        except Exception as error:  # whatever is raised is the finding
            return fail("refuses", f"{type(error).__name__}: {error}")
    if problem := difference(found, expected, dtype, values=not random):
        return fail("differs", problem)
    if isinstance(found_gradients, Exception):
        return fail("gradient", f"{type(found_gradients).__name__}: {found_gradients}")
    seeds = [torch.tensor(c) for c in cotangents]
    true = torch.autograd.grad(smooth, leaves.theirs, seeds, allow_unused=True) if wanted else ()
    zeroed = [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(true, leaves.theirs)]
    problem = difference(found_gradients, zeroed, dtype)
    return fail("gradient", problem) if problem else None


def _run(
    function: Function, call: tuple[Any, Any, Any], leaves: list[Tensor], places: list[int], seeds: list[Tensor]
) -> tuple[list[Any], Any]:
    """The results, and the gradients of ``leaves`` or the error that they ended in."""
    x, args, keywords = call
    found = flat(function(x, *args, **keywords))
    if not seeds:
        return found, []
    try:
        given = gradients([found[place] for place in places if place < len(found)], seeds, leaves)
    except Exception as error:  # reported after the values, which come first
        return found, error
    return found, [zeros_like(leaf) if g is None else g for g, leaf in zip(given, leaves)]


def _run_compiled(
    function: Function, call: tuple[Any, Any, Any], leaves: list[Tensor], places: list[int], seeds: list[Tensor]
) -> tuple[list[Any], Any]:
    """:func:`_run` as one compiled program of all tensors of the call."""
    tensors = [x for x in flat([call[0], *call[1], *call[2].values()]) if isinstance(x, Tensor)]
    learned = [next(i for i, x in enumerate(tensors) if x is leaf) for leaf in leaves]

    @jg.jit(backend="python")
    def program(given: list[Tensor], seeds: list[Tensor]) -> tuple[list[Any], Any]:
        rest = iter(given)
        return _run(function, with_tensors(call, rest), [given[i] for i in learned], places, seeds)

    return program(tensors, seeds)


def with_tensors(value: Any, rest: Iterator[Tensor]) -> Any:
    """``value`` with the tensors in it replaced, in order, by those of ``rest``."""
    if isinstance(value, Tensor):
        return next(rest)
    if isinstance(value, (list, tuple)):
        return type(value)(with_tensors(part, rest) for part in value)
    return {name: with_tensors(part, rest) for name, part in value.items()} if isinstance(value, dict) else value
