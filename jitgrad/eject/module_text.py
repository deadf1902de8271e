"""The text of an ejected module, and of the test beside it."""

from __future__ import annotations

import textwrap

import numpy as np

from jitgrad.eject.cpu_text import CPU_CHECKS
from jitgrad.eject.cuda_text import CUDA_CHECKS
from jitgrad.eject.driver import DriverWriter, dtype_text
from jitgrad.eject.line_wrapping import wrap_line
from jitgrad.eject.module_spec import InputSpec, ModuleSpec

_SMALL = 64  # elements of a constant that is written out; larger ones lie in the file of recorded arrays


def names_at_top(spec: ModuleSpec) -> set[str]:
    """Names that no function of the module may take."""
    names = set("np numba math njit njit_rows prange PARALLEL CACHE namedtuple run example RECORDED".split())
    inputs = {n for i in spec.inputs for n in (i.name, f"{i.name}_flat")}
    names |= set("cuda cupy device_function divide THREADS".split()) | CPU_CHECKS.keys() | CUDA_CHECKS.keys()
    return names | set(spec.parameters) | set(spec.state) | inputs


def write_module(spec: ModuleSpec, driver: DriverWriter, file_name: str) -> str:
    """The text of the module."""
    driver.write()
    constants, reads_file = _constants(spec, file_name)
    imports = dict(driver.library.imports) | dict(driver.user_functions.imports)
    lines = [f"import {module}{f' as {name}' if name != module else ''}" for name, module in sorted(imports.items())]
    lines = [line for line in lines if line != "import numpy as np"]
    classes = list((spec.classes | driver.classes).values())
    lines += [text for text in classes if text.startswith("from ")]
    if any("namedtuple(" in text for text in classes):
        lines.append("from collections import namedtuple")
    if reads_file:
        lines.append("import os")
    summary = f"{spec.name} from {spec.origin}, as plain numba code that jitgrad wrote."
    body = "\n\n".join(textwrap.fill(p, 100, break_long_words=False, break_on_hyphens=False) for p in _about(spec, driver))
    parts = [
        driver.head.format(summary=summary, body=body, imports="".join(f"{line}\n" for line in lines) + ("\n" if lines else "")),
        "".join(f"\n{text}\n" for text in classes if not text.startswith("from ")),
        constants,
        driver.functions,
        *driver.kernels.values(),
        driver.library.text,
        *_used_functions(spec, driver),
        _run_text(spec, driver),
        _example_text(spec, driver),
    ]
    return "".join(parts)


def _about(spec: ModuleSpec, driver: DriverWriter) -> list[str]:
    about = [
        "``run`` computes what the function computes, for arrays of exactly the shapes and dtypes that it was written "
        "for. Each kernel is one function; it takes flat arrays and numbers of elements. Comments name the lines that "
        "it comes from. ``example`` repeats the recorded call, for the test beside this file.",
        "Sums of floats are computed in float64, and those of float64 keep what additions round off. float16 is "
        "computed in float32 and rounded after each operation.",
        *driver.about,
    ]
    changed = [i.expression for i in spec.inputs if i.changed]
    if spec.state:
        about.append(f"Keyword arguments are what the function reads from outside: {', '.join(spec.state)}.")
    if changed:
        about.append(f"These arrays get their new values in place: {', '.join(changed)}. They must be in C order.")
    if spec.gradients:
        about.append("The function leaves gradients behind: ``run`` returns its result and a dict of them by name.")
    return about


def _constants(spec: ModuleSpec, file_name: str) -> tuple[str, bool]:
    """Definitions of the arrays that the function itself makes, and whether they read the recorded file."""
    lines, reads = [], False
    for i in spec.inputs:
        if i.constant is None:
            continue
        flat = i.constant.reshape(-1)
        if flat.size <= _SMALL and np.isfinite(flat.astype(np.float64)).all():
            lines.append(f"{i.expression} = np.array({flat.tolist()!r}, {dtype_text(i.dtype)})\n")
        else:
            lines.append(f"{i.expression} = RECORDED[{i.expression!r}]\n")
            reads = True
    if reads:
        where = f"os.path.join(os.path.dirname(os.path.abspath(__file__)), {file_name!r})"
        lines.insert(0, f"with np.load({where}) as file:\n    RECORDED = dict(file)\n")
    return "".join(["\n", *lines]) if lines else "", reads


def _used_functions(spec: ModuleSpec, driver: DriverWriter) -> list[str]:
    used = set(driver.used_checks)
    if "changed_array" in used:
        used |= {"flat_array", "check_apart"}
    if spec.static:
        used.add("check_value")
    return [f"\n{text}" for name, text in driver.checks.items() if name in used]


def _run_text(spec: ModuleSpec, driver: DriverWriter) -> str:
    parameters = [*spec.parameters, *(["*"] if spec.state else []), *spec.state]
    lines = [f"def run({', '.join(parameters)}):"]
    if len(lines[0]) > 110:
        lines = ["def run(", *(f"    {p}," for p in parameters), "):"]
    takes = [f"{i.expression}: {_aval(i)}" for i in spec.inputs if i.constant is None]
    lines.append('    """Takes ' + (", ".join(takes) or "nothing") + '."""')
    lines[-1:] = textwrap.wrap(lines[-1], 100, subsequent_indent="    ", break_long_words=False)
    lines += [f"    check_value({expression!r}, {expression}, {text})" for expression, text in spec.static]
    return '\n\n@np.errstate(all="ignore")\n' + "\n".join([*lines, *driver.lines]) + "\n"


def _aval(i: InputSpec) -> str:
    return "a number" if i.is_number else f"{np.dtype(i.dtype).name}{list(i.shape)}"


def _example_text(spec: ModuleSpec, driver: DriverWriter) -> str:
    """The function that repeats the recorded call: it builds the arguments, and lists results by name."""
    lines = ["def example(recorded):", '    """The results and new values of the recorded call, by name."""']
    for i in spec.inputs:
        if i.constant is None:
            data = f"recorded[{f'input {i.expression}'!r}]"
            lines.append(f"    {i.name} = {f'float({data})' if i.is_number else f'{data}.copy()'}")
    arguments = [*spec.call_arguments, *(f"{name}={name}" for name in spec.state)]
    lines += wrap_line(f"    result = run({', '.join(arguments)})")
    if spec.gradients:
        lines.append("    result, gradients = result")
    pairs = [f"{name!r}: {driver.on_host(text)}" for name, text in spec.compared]
    lines += ["    return {", *(f"        {pair}," for pair in pairs), "    }"]
    return "\n\n" + "\n".join(lines) + "\n"


_TEST = '''"""Compares {name}.py with the results that jitgrad recorded in {name}.npz; runs without jitgrad."""

import importlib.util
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def load():
    """The module, and the recorded arrays of each call by name."""
    spec = importlib.util.spec_from_file_location({name!r}, os.path.join(HERE, "{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with np.load(os.path.join(HERE, "{name}.npz")) as file:
        calls = ["call %d: " % k for k in range(int(file["calls"]))]
        return module, [{{name[len(call):]: file[name] for name in file if name.startswith(call)}} for call in calls]


def check(name, actual, expected, limit):
    """Every element is as near what eager execution gave as rounding takes it."""
    actual = np.asarray(actual)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, f"{{name}}: {{actual.dtype}}{{actual.shape}}"
    with np.errstate(all="ignore"):
        same = (actual == expected) | ((actual != actual) & (expected != expected))
        near = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= limit
    wrong = np.argwhere(~(same | near))
    assert not len(wrong), f"{{name}}{{list(wrong[0])}} is {{actual[tuple(wrong[0])]!r}}, not {{expected[tuple(wrong[0])]!r}}"


def test_{identifier}():
    module, calls = load()
    for recorded in calls:
        for name, actual in module.example(recorded).items():
            check(name, actual, recorded["expected " + name], recorded["limit " + name])


if __name__ == "__main__":
    test_{identifier}()
    print("{name}.py agrees with the recorded results", file=sys.stderr)
'''


def write_test(name: str) -> str:
    """The text of the test for the module ``name``."""
    return _TEST.format(name=name, identifier="".join(c if c.isalnum() else "_" for c in name))

