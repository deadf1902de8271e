"""Compares compiled with eager on random programs, and counts what differs.

    python tools/random_programs.py 10000             # seeds 0 to 9999
    python tools/random_programs.py 10000 20000 first # seeds from 10000, with the first-call check
    JITGRAD_BACKEND=python python tools/random_programs.py 10000    # without compiling kernels

Half of them are straight-line programs of `jitgrad.testing.programs` with the gradients of all
operands, half functions of `jitgrad.testing.state_programs` and `gradient_programs`: all layouts, axes of length 0, views of
views, in-place changes of arguments and state, dicts in several orders, generators and inner @jit
functions, each called four times.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad.core.errors import MeaningWarning
from jitgrad.testing import random_program
from jitgrad.testing.gradient_programs import GradientStateProgram
from jitgrad.testing.state_programs import StateProgram

WORDS = {"": "equal", "refused": "refused by the compiler", "error": "an error in both"}


def straight_line(seed: int, check: str) -> str:
    """What differs in values or gradients of a random program without state."""
    program = random_program(seed, 10)

    def loss(*xs: Any) -> Any:
        outputs = program.function(*xs)
        return sum(((out * (0.3 + 0.1 * k)).sum() for k, out in enumerate(outputs)), start=jg.tensor(0.0)), outputs

    step = jg.value_and_grad(loss, argnums=tuple(range(len(program.shapes))), has_aux=True)
    xs = [jg.tensor(x) for x in program.operands(np.float64)]
    (value, outs), grads = step(*xs)
    (found, found_outs), found_grads = jg.jit(step, check=check)(*xs)
    pairs = zip((found, *found_outs, *found_grads), (value, *outs, *grads), strict=True)
    for k, (ours, eager) in enumerate(pairs):
        if ours.shape != eager.shape or not np.allclose(ours.numpy(), eager.numpy(), 1e-7, 1e-7):
            return f"result {k} is {ours}, not {eager}"
    return ""


def main() -> None:
    warnings.simplefilter("error")  # a mismatch of the first-call check is a warning
    warnings.simplefilter("ignore", MeaningWarning)
    first, last = (0, int(sys.argv[1])) if len(sys.argv) < 3 else map(int, sys.argv[1:3])
    check = sys.argv[3] if len(sys.argv) > 3 else "off"
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        try:
            if seed % 2:
                kind_of_program = GradientStateProgram if seed % 4 == 1 else StateProgram
                difference = kind_of_program(seed, partial(jg.jit, check=check), {"jg": jg}).difference()
            else:
                difference = straight_line(seed, check)
        except Exception as error:
            difference = f"crash: {error!r}"
        kind = difference.partition(":")[0]
        counts[WORDS.get(kind, "DIFFERENT")] += 1
        if kind not in WORDS:
            print(f"seed {seed}: {difference}", flush=True)
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()))


if __name__ == "__main__":
    main()
