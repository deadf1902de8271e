"""What the demonstration prints: a table of its three programs, and one kernel with the user's lines beside it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from jitgrad.cli.demo import Demonstration
from jitgrad.inspect import Comparison, KernelView
from jitgrad.inspect.timing import readable_seconds
from jitgrad.runtime.executor.thread_pool import get_num_threads

_COMMENT = re.compile(r" +# \S+  (\S+:\d+)$")
_CODE_WIDTH = 50  # columns for the kernel; the user's lines stand to the right of it


def print_demonstration(console: Console, result: Demonstration) -> None:
    """The table first; then how the results compare, and the kernel."""
    console.print("jitgrad runs a function once, and compiles what it did, forward and backward, into a few loops.")
    threads = get_num_threads()
    where = result.device if result.device != "cpu" else f"{threads} {'core' if threads == 1 else 'cores'}"
    console.print(f"The same three programs op by op and compiled by @jg.jit, on {where}:\n", markup=False)
    table = Table("", "op by op", "compiled", "faster")
    for row in table_rows(result):
        table.add_row(*row)
    console.print(table)
    for line in findings(result):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for kernel in result.kernels:
        console.print(f"\nAll {len(kernel.ops)} ops of option_prices are one loop; the lines beside it are the user's:\n")
        text = Syntax("", "python", background_color="default").highlight(beside_the_users_lines(kernel))
        console.print(text, soft_wrap=True)


def table_rows(result: Demonstration) -> Iterator[tuple[str, str, str, str]]:
    """(program, time eager, time compiled, their ratio)."""
    eager, fused = result.eager, result.fused
    training = f"training of a GRU that reads digits: {len(eager.losses)} steps,\nwith all that @jit does before the first one"
    yield training, f"{eager.seconds:.2f} s", f"{fused.seconds:.2f} s", f"{eager.seconds / fused.seconds:.1f}x"
    sizes = f"{result.size:,}"
    yield _comparison_row(f"Black-Scholes prices of {sizes} options", result.prices)
    yield _comparison_row(f"12 steps of an oscillator from {sizes} starts,\nand the gradient back through them", result.motion)


def _comparison_row(what: str, compared: Comparison) -> tuple[str, str, str, str]:
    eager, fused = readable_seconds(compared.eager.median), readable_seconds(compared.fused.median)
    return what, eager, fused, f"{compared.speedup:.1f}x"


def findings(result: Demonstration) -> Iterator[str]:
    """How the results compare, and what compilation took."""
    eager, fused, info = result.eager, result.fused, result.compiled
    steps = (fused.seconds - fused.first_step) / max(len(fused.losses) - 1, 1)
    kernels = f"{info.kernels_compiled} kernels compiled, {info.kernels_from_disk} from disk"
    yield (
        f"Training: {result.dataset.source}; {eager.accuracy:.1%} of the test images right op by op, {fused.accuracy:.1%} "
        f"compiled; the losses differ by at most {result.largest_difference:.2g}."
    )
    yield (
        f"Its first compiled step takes {readable_seconds(fused.first_step)} ({kernels}, and a check against eager execution), "
        f"the others {readable_seconds(steps)} each."
    )
    for what, compared in (("The prices", result.prices), ("The motion", result.motion)):
        verdict = "agrees with eager" if compared.agrees else "DISAGREES with eager"
        worst = compared.max_error
        error = f", within {worst.ulps:.2g} units in the last place" if worst is not None and compared.agrees else ""
        loops = "1 loop" if compared.launches == 1 else f"{compared.launches} loops"
        yield (
            f"{what}: {compared.eager_ops} ops in {loops}, compiled in {readable_seconds(compared.first_call)}; {verdict}{error}."
        )


def beside_the_users_lines(kernel: KernelView) -> str:
    """The kernel's text, with the user's line where its text names one; a line that continues the one above is left out."""
    files = {str(origin): origin for origin in kernel.origins}
    lines: list[str] = []
    above = ""
    for line in kernel.source.splitlines():
        comment = _COMMENT.search(line)
        origin = files.get(comment[1]) if comment else None
        if comment is None or origin is None:
            lines.append(line.split("  #")[0].rstrip())
            continue
        code = line[: comment.start()]
        note = "" if comment[1] == above else f"# {linecache.getline(origin.file, origin.line).strip()}"
        lines.append(f"{code:<{_CODE_WIDTH}}{note}".rstrip())
        above = comment[1]
    return "\n".join(lines)
