"""Tables of measurements, for the terminal and in Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks import system
from benchmarks.measure import Outcome, Row
from benchmarks.plot import plot
from benchmarks.record import Record
from benchmarks.roofline import far_kernels, line_of

__all__ = ["markdown", "plot", "show", "show_comparison"]


def seconds(value: float) -> str:
    """``value`` with a unit and three digits."""
    if math.isnan(value):
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError


def others(outcome: Outcome, in_place: bool) -> list[Row]:
    """The other libraries, in the same form if any has it: with state in place, or passed in and returned."""
    rows = [r for r in outcome.rows if not r.peer.startswith("jitgrad") and not math.isnan(r.median)]
    return [r for r in rows if r.peer.endswith(".module") == in_place] or rows


def best_other(outcome: Outcome, in_place: bool = False, among: Sequence[str] = ()) -> Row | None:
    """The fastest of `others`, or of those in ``among``."""
    rows = [r for r in others(outcome, in_place) if not among or r.peer in among]
    return min(rows, key=lambda r: r.median, default=None)


def ratio(outcome: Outcome, row: Row, among: Sequence[str] = ()) -> float:
    """The time of `best_other` for the same form of the work, divided by that of ``row``."""
    best = best_other(outcome, row.peer.endswith(".module"), among)
    return best.median / row.median if best is not None else math.nan


def fastest_ratio(outcome: Outcome, row: Row) -> float:
    """The same for the fastest batches, which other load of the machine affects least."""
    rows = others(outcome, row.peer.endswith(".module"))
    return min((r.best for r in rows), default=math.nan) / row.best


def number(value: float, form: str = ".2f") -> str:
    return "-" if math.isnan(value) else format(value, form)


COLUMNS = (
    "peer", "first", "median", "quartiles", "faster", "GB/s", "of copy", "error", "faults", "allocs", "MB",
)  # fmt: skip


def cells(outcome: Outcome, row: Row) -> list[str]:
    """One line of the table."""
    if row.failure:
        return [row.peer, seconds(row.first), row.failure] + [""] * (len(COLUMNS) - 3)
    speed = outcome.bytes / row.median / 1e9
    return [
        row.peer,
        seconds(row.first),
        seconds(row.median),
        f"{seconds(row.low)} … {seconds(row.high)}",
        number(ratio(outcome, row)),
        number(speed, ".3g"),
        number(outcome.copy / row.median),
        number(row.error, ".0e"),
        number(row.faults, ".0f"),
        number(row.allocations, ".2g"),
        f"{row.peak / 1e6:.0f}",
    ]


def ordered(outcome: Outcome) -> Iterator[Row]:
    yield from sorted(outcome.rows, key=lambda r: (bool(r.failure), r.median))


def show(record: Record, console: Console) -> None:
    """One table per workload, fastest first, and the compile times."""
    console.print("  ".join(f"{k}: {v}" for k, v in record.machine.items()), markup=False, highlight=False)
    for outcome in record.outcomes:
        title = f"{outcome.workload}: {outcome.title} ({outcome.sizes}; at least {outcome.bytes / 1e6:.3g} MB)"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for k, name in enumerate(COLUMNS):
            table.add_column(name, justify="left" if k == 0 else "right", no_wrap=k != 2)
        for row in ordered(outcome):
            table.add_row(*cells(outcome, row), style="bold" if row.peer == "jitgrad" else None)
        console.print(table)
        console.print()
    if record.compiling:
        table = Table(title="compile time in a fresh process", title_justify="left", box=None, pad_edge=False)
        for name in ("operations", "peer", "cold", "from its disk cache"):
            table.add_column(name, justify="right")
        for c in record.compiling:
            table.add_row(str(c.operations), c.peer, c.failure or seconds(c.cold), seconds(c.cached))
        console.print(table)


def show_comparison(new: Record, old: Record, console: Console) -> None:
    """old/new for every common row; also relative to the copy of the same run, for a machine under load."""
    before = {(o.workload, o.sizes, r.peer): (r, o) for o in old.outcomes for r in o.rows if not r.failure}
    table = Table(title=f"{old.date} -> {new.date}: times faster", title_justify="left", box=None, pad_edge=False)
    for name in ("workload", "peer", "old", "new", "old/new", "old/new in copies"):
        table.add_column(name, justify="left" if name in ("workload", "peer") else "right")
    for outcome in new.outcomes:
        for row in outcome.rows:
            earlier = before.get((outcome.workload, outcome.sizes, row.peer))
            if earlier is None or row.failure:
                continue
            was, then = earlier
            plain = was.median / row.median
            relative = plain * outcome.copy / then.copy
            table.add_row(
                outcome.workload, row.peer, seconds(was.median), seconds(row.median), number(plain), number(relative)
            )
    console.print(table)


# --- Markdown --------------------------------------------------------------------------------------------------------

_INTRODUCTION = """# Performance

jitgrad beside NumPy, PyTorch and JAX, the same function for all of them, on several machines.

* Written by `python -m benchmarks --markdown docs/PERFORMANCE.md`, which replaces the section of its machine;
  `--help` lists what else it can do.
* Each workload is one function over a namespace of array functions (`benchmarks/workloads/`). Its first result is
  compared with a float64 result before anything is timed; a wrong answer is shown as a failure, not as a time.
* Libraries take turns in random order, batch by batch, in one process, with the garbage collector off. Before each
  batch come a pause, until idle threads of others stop spinning, and a call that is not timed. A time is the median of
  the batches; *spread* is the distance of the quartiles relative to it.
* *First call* contains tracing and compiling and, for jitgrad, the check of the first call against eager. The caches on
  disk are empty at the start; what an earlier workload compiled in this process is not compiled again, and the first
  one pays for the import of compilers.
* *Faster* is the time of the fastest library that is not jitgrad divided by this one's: above 1 it wins. Forms with
  state in place are compared with forms with state in place. *By the fastest batch* is the same of the fastest batch
  of each, which other users of the machine disturb least.
* *Of a copy* is the speed at which the unavoidable bytes (each input read once, each result written once) are moved,
  relative to `np.copyto` of as many bytes in the same run. It means little where arithmetic is the limit.
* *Kernels of 1 MB and more* are compared with a copy of as many bytes, or with their own arithmetic on elements in the
  first-level cache, whichever takes longer: their limit on this machine.
* *Products alone* is the time NumPy's BLAS takes in the same run for the matrix products of the compiled step, with
  as many threads: what is left of the step is elementwise work, reductions and the call.
* `jitgrad.module` and `torch.module` are the same work with a Module and an optimiser that change parameters in place
  (PyTorch: `torch.compile` for the loss, `Adam(fused=True)`); other rows pass all state in and return it;
  jitgrad and JAX are told that the state passed in may be overwritten (``donate``, ``donate_argnums``).
* PyTorch's gradients come from `torch.func.grad_and_value` inside `torch.compile`, one graph for both passes: faster
  here than compiling the loss alone and calling `autograd.grad` on it.
"""

_MACHINE = """## {title}

Measured on {date}: {cores} cores, {threads} threads for every library; Python {python}, {versions}.
Others used the machine at the same time: look at the ratios, not at the times.
"""

_HEADER = (
    "| library | first call | median | spread | faster | of a copy | page faults | MB |\n"
    "|:--|--:|--:|--:|--:|--:|--:|--:|\n"
)


COMPILERS = ("torch.compile", "jax")

# workloads whose ratios are averaged
GROUPS = {
    "elementwise, normalisation, softmax, 1M elements and more": (
        "gelu_chain", "bias_layers", "residual_norm_gelu", "dropout_residual_norm", "rms_norm", "batch_norm",
        "cross_entropy", "swiglu",
    ),
    "small steps (under 64k elements, small batches, many tensors)": (
        "small_chain", "gru", "mlp_step_32", "deep_mlp_step", "adam_mixed", "adam_many", "size_1e1", "size_1e2", "size_1e3",
        "size_1e4",
    ),
    "matrix products": (
        "mlp", "lstm_cell", "pinn", "transformer", "kinematics", "mlp_step_128", "mlp_step_1024",
    ),
}  # fmt: skip


def markdown(record: Record, beside: Record | None = None, page: str = "") -> str:
    """The page of tables, ``page`` with a new section for the machine of ``record`` in place of an earlier one.

    ``beside``, a record with another number of threads, is a column of the summary.
    """
    return with_section(page or _INTRODUCTION, _section(record, beside))


def with_section(page: str, section: str) -> str:
    """``page`` with ``section`` in place of the one with its title, or behind all others."""
    introduction, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    title, new = section.splitlines()[0], section.rstrip()
    kept = [new if old.splitlines()[0] == title else old.rstrip() for old in sections]
    return "\n\n".join([introduction.rstrip(), *kept, *([] if new in kept else [new])]) + "\n"


def _section(record: Record, beside: Record | None) -> str:
    """The tables of one machine."""
    from benchmarks.workloads import ALL

    m, names = _known(record.machine), ("numpy", "numba", "torch", "jax")
    versions = ", ".join(f"{name} {record.machine[name]}" for name in names if name in record.machine)
    parts = [_MACHINE.format(title=system.title(m), date=record.date, versions=versions, **m), _summary(record, beside)]
    for outcome in record.outcomes:
        limits = ALL[outcome.workload].limits if outcome.workload in ALL else ""
        about = f"{outcome.title} ({outcome.sizes}). Limit: {limits}."
        if not math.isnan(outcome.products):
            about += f" Products alone: {seconds(outcome.products)}."
        kernels = f"\n{line_of(outcome.kernels)}\n" if outcome.kernels else ""
        parts.append(f"### {outcome.workload}\n\n{about}\n\n{_rows(outcome)}{kernels}")
    if far := far_kernels((outcome.workload, outcome.kernels) for outcome in record.outcomes):
        parts.append(far)
    if record.compiling:
        parts.append(_compiling(record))
    return "\n".join(parts) + "\n"


def _known(m: dict[str, str]) -> dict[str, str]:
    return {key: m.get(key, "?") for key in ("cpu", "cores", "vectors", "threads", "python")}


def _compared(record: Record) -> Iterator[tuple[str, Outcome, Row]]:
    """(name, outcome, row) of jitgrad's rows in the summary."""
    for outcome in record.outcomes:
        for own in outcome.rows:
            in_place = own.peer == "jitgrad.module"
            if (in_place or own.peer == "jitgrad") and not own.failure and best_other(outcome, in_place) is not None:
                yield f"{outcome.workload}, in place" if in_place else outcome.workload, outcome, own


def _summary(record: Record, beside: Record | None) -> str:
    elsewhere = {name: number(ratio(outcome, own)) for name, outcome, own in _compared(beside)} if beside else {}
    threads = f" {_threads(beside)} |" if beside else ""
    lines = [f"### Summary\n\n| workload | jitgrad | best other | faster | by the fastest batch |{threads}"]
    lines.append("|:--|--:|:--|--:|--:|" + "--:|" * bool(beside))
    for name, outcome, own in _compared(record):
        other = best_other(outcome, own.peer == "jitgrad.module")
        assert other is not None
        times = f"{seconds(own.median)} | {seconds(other.median)} ({other.peer})"
        ratios = f"{number(ratio(outcome, own))} | {number(fastest_ratio(outcome, own))} |"
        lines.append(f"| {name} | {times} | {ratios}" + (f" {elsewhere.get(name, '-')} |" if beside else ""))
    return "\n".join([*lines, "", *_means(record, beside), *_first_calls(record)]) + "\n"


def _means(record: Record, beside: Record | None) -> Iterator[str]:
    """Geometric means of *faster* over groups of workloads: beside all libraries, and beside compilers alone."""
    for title, names in GROUPS.items():
        texts = []
        for some in filter(None, (record, beside)):
            rows = {name: (outcome, own) for name, outcome, own in _compared(some)}
            plain = [rows[n] for n in names if n in rows]
            placed = [rows.get(f"{n}, in place", rows[n]) for n in names if n in rows]
            if plain:
                text = f"{_mean(plain):.2f}" + (f" ({_mean(placed):.2f} with the forms in place)" * (placed != plain))
                compilers = f"{_mean(plain, COMPILERS):.2f}"
                text += f" or {compilers} beside {' and '.join(COMPILERS)} alone" * (not text.startswith(compilers))
                texts.append(f"{text}, {_threads(some)}")
        if texts:
            yield f"* Geometric mean, {title}: {'; '.join(texts)}."


def _first_calls(record: Record) -> Iterator[str]:
    """First calls of the other compilers divided by jitgrad's: of all workloads, and without those of many sizes."""
    for peer in COMPILERS:
        ratios = {}
        for outcome in record.outcomes:
            first = {row.peer: row.first for row in outcome.rows if not row.failure}
            if not math.isnan(first.get(peer, math.nan) + first.get("jitgrad", math.nan)):
                ratios[outcome.workload] = first[peer] / first["jitgrad"]
        if ratios:
            apart = [r for name, r in ratios.items() if not name.startswith(("call_", "size_"))]
            rest = f" ({geometric(apart):.2f} without calls and sizes, which share kernels)" * (0 < len(apart) < len(ratios))
            yield f"* Geometric mean, first call, {peer}'s time divided by jitgrad's: {geometric([*ratios.values()]):.2f}{rest}."


def _threads(record: Record) -> str:
    count = record.machine.get("threads", "?")
    return f"{count} thread" + "s" * (count != "1")


def _mean(rows: list[tuple[Outcome, Row]], among: Sequence[str] = ()) -> float:
    return geometric([ratio(outcome, row, among) for outcome, row in rows])


def geometric(ratios: Sequence[float]) -> float:
    """The geometric mean of those that are numbers."""
    known = [math.log(r) for r in ratios if not math.isnan(r)]
    return math.exp(sum(known) / len(known)) if known else math.nan


def _rows(outcome: Outcome) -> str:
    lines = []
    for row in ordered(outcome):
        if row.failure:
            lines.append(f"| {row.peer} | | failed: {row.failure.replace('|', '/')} | | | | | |")
            continue
        spread = f"{(row.high - row.low) / row.median:.0%}"
        numbers = (number(ratio(outcome, row)), number(outcome.copy / row.median), number(row.faults, ".0f"))
        name = f"**{row.peer}**" if row.peer == "jitgrad" else row.peer
        lines.append(
            f"| {name} | {seconds(row.first)} | {seconds(row.median)} | {spread} | {' | '.join(numbers)} "
            f"| {row.peak / 1e6:.0f} |"
        )
    return _HEADER + "\n".join(lines) + "\n"


def _compiling(record: Record) -> str:
    lines = [
        "### Compile time\n",
        "First call of a forward and backward chain of so many operations, in a fresh process, libraries imported.\n",
        "| operations | library | empty cache | its disk cache filled |",
        "|--:|:--|--:|--:|",
    ]
    for c in record.compiling:
        cold = f"failed: {c.failure}" if c.failure else seconds(c.cold)
        lines.append(f"| {c.operations} | {c.peer} | {cold} | {seconds(c.cached)} |")
    return "\n".join(lines) + "\n"
