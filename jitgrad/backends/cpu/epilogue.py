"""The text of epilogues, which merge the partial results of all blocks and run what reads them."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.backends.codegen.scalar import cast
from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.codegen.statements import Body, dense, fold_statement, index
from jitgrad.compiler.lowering.kernel_ir import Accumulate, AccumulatorScope, Kernel, Statement

MERGED_ROWS = 3  # in one loop: each takes two lines of a set of the first-level cache, which has 8 or more


def emit_epilogue(kernel: Kernel) -> Source:
    """The source of the epilogue: partial results are merged in a fixed order, so that sums do not
    vary."""
    epilogue = kernel.epilogue
    assert epilogue is not None
    out = Emitter()
    columns = tuple(f"j{k}" for k in range(len(kernel.inner))) if len(kernel.inner) > 1 else ("j",)
    with out.block(f"def epilogue({', '.join([*(p.name for p in epilogue.params), 'start', 'stop'])}):"):
        _merge_blocks(out, [s for s in epilogue.merges if s.where is AccumulatorScope.BLOCK])
        _merge_columns(out, [s for s in epilogue.merges if s.where is not AccumulatorScope.BLOCK], epilogue.inner)
        top = Body(out, (), (), False)
        for statement in epilogue.scalars:
            top.statement(statement)
        if epilogue.columns:
            place = Body(out, (), columns, False)
            merges = [s for s in epilogue.merges if s.where is AccumulatorScope.COLUMN]
            _emit_columns(out, place, kernel, merges, epilogue.columns, 0)
    return out.source(epilogue.params)


def _merge_blocks(out: Emitter, merges: Sequence[Accumulate]) -> None:
    """Merge numbers, all in the same loops, which are most of the text that LLVM compiles."""
    if not merges:
        return
    out.line("m = blocks", "merge in a fixed tree")
    with out.block("while m > 1:"):
        out.line("h = (m + 1) // 2")
        with out.block("for k in range(m - h):"):
            for s in merges:
                p = s.partial
                out.line(f"{p}[k] = {fold_statement(s.monoid, s.dtype, f'{p}[k]', f'{p}[k + h]', reorder=False)}")
        out.line("m = h")
    for s in merges:
        first = f"to_bool({s.partial}[0])" if s.dtype.kind == "b" else f"{s.partial}[0]"
        out.line(f"{s.name} = {cast(first, s.dtype, s.result)}", s.note)


def _merge_columns(out: Emitter, merges: Sequence[Accumulate], row: str) -> None:
    """Merge rows, a few in each loop: more would evict each other where they start at the same
    offset of a page."""
    for first in range(0, len(merges), MERGED_ROWS):
        with out.block("for k in range(1, blocks):", "merge in a fixed order"), out.block(f"for j in range({row}):"):
            for s in merges[first : first + MERGED_ROWS]:
                target = f"{s.partial}[j]"
                other = f"{s.partial}[k * {row} + j]"
                out.line(f"{target} = {fold_statement(s.monoid, s.dtype, target, other, reorder=False)}")


def _emit_columns(
    out: Emitter, place: Body, kernel: Kernel, merges: list[Accumulate], statements: Sequence[Statement], depth: int
) -> None:
    with out.block(f"for {place.columns[depth]} in range({kernel.inner[depth]}):"):
        if depth + 1 < len(place.columns):
            _emit_columns(out, place, kernel, merges, statements, depth + 1)
            return
        for s in merges:
            element = f"{s.partial}[{index(dense(s, len(place.columns)), place.columns)}]"
            out.line(f"{s.name} = {f'to_bool({element})' if s.dtype.kind == 'b' else element}", s.note)
        for statement in statements:
            place.statement(statement)
