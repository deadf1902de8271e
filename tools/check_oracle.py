"""Judges programs and the first-call check by evaluation in long double, with mpmath for erf.

    python tools/check_oracle.py              # counts, and every alarm or unexplained difference

Each program runs in float16, float32 and float64, forward and with gradients. A compiled result is
right if every element of it is off from the wide value by no more than `FACTOR` times what eager
execution is, and what the wide value moves where every op errs by a rounding or two; decisions near
a tie, which go either way in these runs, are so explained. The check must raise no alarm at it.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mpmath
import mutant_programs
import numpy as np

import jitgrad as jg
from jitgrad.core.errors import MismatchWarning
from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.eager.scalar_eval import _code, scalar_functions
from jitgrad.testing import random_program

TESTS = Path(__file__).parent.parent / "tests" / "jit" / "test_ill_conditioned.py"
WIDE = np.longdouble
FACTOR, ULPS, RUNS = 4.0, 4.0, 6
SEEDS = range(70)

Case = tuple[str, Callable[..., Any], list[Any]]


def _by_mpmath(function: Callable[..., Any]) -> Callable[..., Any]:
    def one(x: Any) -> Any:
        if not np.isfinite(x):
            return np.nan if np.isnan(x) else WIDE(str(function(mpmath.inf if x > 0 else -mpmath.inf)))
        return WIDE(mpmath.nstr(function(mpmath.mpf(np.format_float_scientific(x, unique=True))), 25))

    return np.vectorize(one, otypes=[WIDE])


FUNCTIONS: Mapping[str, Any] = {
    **scalar_functions(),
    **{name: getattr(np, name) for name in "sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt".split()},
    **{name: getattr(np, name) for name in "hypot logaddexp floor ceil trunc rint copysign isnan isinf isfinite".split()},
    **{name: getattr(np, f"arc{name[1:]}") for name in "asin acos atan asinh acosh atanh atan2".split()},
    "erf": _by_mpmath(mpmath.erf),
    "erfc": _by_mpmath(mpmath.erfc),
    "_select": np.where,
    "_typed": lambda x, dtype: np.asarray(x, WIDE if np.dtype(dtype).kind == "f" else dtype),
    "pow": np.power,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, WIDE(0)),
}


def wide_values(graph: Graph, inputs: list[Any], noise: np.random.Generator | None = None) -> list[np.ndarray[Any, Any]]:
    """The outputs of ``graph``, with every float in long double; ``noise``: each op errs by about a
    rounding of its dtype, and sums by as many as a tree of their terms has levels."""
    values: dict[Atom, Any] = {v: _widened(x) for v, x in zip(graph.inputs, inputs, strict=True)}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            result = _wide_result(node, values)
            if noise is not None and not node.op.multiple and node.out.aval.dtype.kind == "f":
                result = result + noise.uniform(-1, 1, result.shape) * _rounding(node, values, result)
            values.update(zip(node.outs, result if node.op.multiple else (result,), strict=True))
    return [np.asarray(values[a] if isinstance(a, Value) else a.value) for a in graph.outputs]


def _rounding(node: TraceNode, values: Mapping[Atom, Any], result: Any) -> Any:
    eps, op = float(np.finfo(node.out.aval.dtype).eps), node.op
    least = float(np.finfo(node.out.aval.dtype).smallest_subnormal)
    if op.kind is Kind.ELEMENTWISE:
        return np.abs(result) * eps + least
    sizes = [np.abs(values[a]) for a in node.ins if isinstance(a, Value)]
    if op.name in ("sum", "cumulative_sum") or op.contraction:
        return op.eager(*sizes, **dict(node.attrs)) * eps * np.log2(2 + sizes[0].size)
    return np.abs(result) * eps * np.log2(2 + sizes[0].size) if op.name == "prod" else 0.0


def _widened(x: Any) -> Any:
    array = np.asarray(x)
    return array.astype(WIDE) if array.dtype.kind == "f" else array


def _wide_result(node: TraceNode, values: Mapping[Atom, Any]) -> Any:
    op, attrs = node.op, dict(node.attrs)
    avals = [atom.aval for atom in node.ins]
    dtypes = op.dtypes(avals, **attrs)[0] if op.kind is Kind.ELEMENTWISE else [a.dtype for a in avals]
    arrays = []
    for atom, dtype in zip(node.ins, dtypes, strict=True):
        x = values[atom] if isinstance(atom, Value) else np.asarray(atom.value, dtype)  # constants are rounded
        arrays.append(_widened(x) if dtype.kind == "f" else np.asarray(x, dtype))
    if op.kind is Kind.ELEMENTWISE and op.scalar is not None and op.name != "astype":
        floats = any(dtype.kind == "f" for dtype in dtypes)
        code = _code(op.scalar, np.dtype(WIDE) if floats else dtypes[-1])
        names = dict(zip(op.operands, arrays, strict=True))
        result = np.asarray(eval(code, {**FUNCTIONS, **names, **attrs}))  # type: ignore[arg-type]
    elif op.name == "astype" or op.name in ("stop_gradient", "copy"):
        result = arrays[0]
    else:
        result = op.eager(*arrays, **attrs)
    out = node.out.aval.dtype
    return result.astype(WIDE if out.kind == "f" else out) if not op.multiple else result


# --- programs ------------------------------------------------------------------------------------


def cases(dtype: str) -> Iterator[Case]:
    """Name, function and operands of each program."""
    spec = importlib.util.spec_from_file_location("ill_conditioned", TESTS)
    assert spec is not None and spec.loader is not None
    ill = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ill)
    for name, f in ill.PROGRAMS.items():
        yield name, f, [jg.tensor(x) for x in ill.operands(dtype)]
    groups = ("elementwise", "reductions", "movement", "products", "of_all_forms")
    for group in groups:
        for k, (f, shapes, _) in enumerate(getattr(mutant_programs, group)()):
            yield f"{group} {k}", f, mutant_programs.operands(shapes, dtype)
    for seed in SEEDS:
        program = random_program(seed, 14)
        yield f"random {seed}", program.function, [jg.tensor(x) for x in program.operands(dtype)]


def with_gradients(f: Callable[..., Any], count: int) -> Callable[..., Any]:
    def loss(*xs: Any) -> Any:
        outs = f(*xs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        return sum(((out * out).mean() for out in outs if out.dtype.kind == "f"), start=jg.tensor(0.0, dtype=xs[0].dtype))

    return jg.value_and_grad(loss, argnums=tuple(range(count)))


# --- judgement -----------------------------------------------------------------------------------


def worse(
    fused: np.ndarray[Any, Any], eager: np.ndarray[Any, Any], wide: np.ndarray[Any, Any], noisy: list[np.ndarray[Any, Any]]
) -> str:
    """In what way ``fused`` is further off than eager execution and rounding take it, or "" """
    if fused.shape != eager.shape or fused.dtype != eager.dtype:
        return "shape or dtype"
    ours, theirs, exact = (np.asarray(a).astype(WIDE) for a in (fused, eager, wide))
    with np.errstate(all="ignore"):
        moves = np.max([np.abs(n.astype(WIDE) - exact) for n in noisy], axis=0)
        rounding = ULPS * float(np.finfo(eager.dtype).eps) * np.abs(exact) if eager.dtype.kind == "f" else 0.0
        allowed = FACTOR * (np.abs(theirs - exact) + moves) + rounding
        fine = (np.abs(ours - exact) <= allowed) | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | np.isnan(allowed)
    if np.all(fine):
        return ""
    k = int(np.argmin(fine.reshape(-1)))
    found, expected, true, tolerance = (float(a.reshape(-1)[k]) for a in (ours, theirs, exact, allowed))
    return f"{np.sum(~fine)} of {fine.size}, such as {found!r}; eager {expected!r}, wide {true!r} +- {tolerance:.2g}"


def judge(f: Callable[..., Any], args: list[Any]) -> tuple[str, str]:
    """(what is wrong with the compiled results, the alarm of the check)."""
    compiled, alarm = jg.jit(f, check="off"), ""
    fused, eager = ([np.asarray(x.detach()) for x in _flat(g(*args))] for g in (compiled, f))
    graph = compiled.graph(*args, stage="trace")
    executable = compiled.lookup(*args)
    inputs = [getattr(x, "_data", x) for x in executable.operands_before(args)]
    wide = wide_values(graph, inputs)
    noisy = [wide_values(graph, inputs, np.random.default_rng(k)) for k in range(RUNS)]
    outputs = [r.output for r in executable.traced.results]
    for ours, theirs, k in zip(fused, eager, outputs, strict=True):
        if k is not None and (reason := worse(ours, theirs, wide[k], [outs[k] for outs in noisy])):
            return reason, alarm
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MismatchWarning)
        jg.jit(f)(*args)
    return "", str(caught[0].message) if caught else alarm


def _flat(result: Any) -> list[Any]:
    return [x for part in result for x in _flat(part)] if isinstance(result, tuple) else [result]


def main() -> None:
    counts: Counter[str] = Counter()
    names: set[str] = set()
    for dtype in ("f2", "f4", "f8"):
        for name, f, args in cases(dtype):
            names.add(name)
            for gradients in (False, True):
                g = with_gradients(f, len(args)) if gradients else f
                try:
                    wrong, alarm = judge(g, args)
                except jg.core.errors.JitgradError as error:
                    counts["refused"] += 1
                    print(f"{name} {dtype} {'gradient' if gradients else 'forward'}: {error}"[:200], flush=True)
                    continue
                counts["off" if wrong else "alarm" if alarm else "right, no alarm"] += 1
                if wrong or alarm:
                    print(f"{name} {dtype} {'gradient' if gradients else 'forward'}: {wrong or alarm}"[:300], flush=True)
    print(f"{len(names)} programs: {dict(counts)}")
    sys.exit(1 if counts["alarm"] else 0)


if __name__ == "__main__":
    main()
