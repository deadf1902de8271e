"""Reductions over the threads of a team or block: shuffles within a warp, shared memory between
warps. The order of every sum is fixed."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.backends.codegen.source import Emitter
from jitgrad.backends.codegen.statements import as_value, fold_statement
from jitgrad.backends.cuda.schedule import WARP
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.monoid import Monoid
from jitgrad.eager.float16 import compute_dtype

Total = tuple[str, Monoid, Dtype]  # a variable, how its parts are merged, its dtype


class TeamSums:
    """Writes reductions for blocks of ``threads``, of which ``team`` run a row."""

    def __init__(self, out: Emitter, threads: int, team: int) -> None:
        self.out = out
        self.threads = threads
        self.team = team

    def over_team(self, totals: Sequence[Total]) -> None:
        """Give every thread of a team the totals of the team. All threads of a warp take part."""
        self._over(totals, self.team)

    def over_block(self, totals: Sequence[Total]) -> None:
        """Give every thread the totals of the block."""
        self._over(totals, self.threads)

    def _over(self, totals: Sequence[Total], threads: int) -> None:
        if not totals:
            return
        distance = min(threads, WARP) // 2
        while distance:
            for name, monoid, dtype in totals:
                other = f"shuffle_xor({name}, {distance})"
                self.out.line(f"{name} = {fold_statement(monoid, dtype, name, other, reorder=False)}")
            distance //= 2
        if threads > WARP:
            self._over_warps(totals, threads // WARP)

    def _over_warps(self, totals: Sequence[Total], warps: int) -> None:
        out = self.out
        for name, _, dtype in totals:
            out.line(f"{name}h = shared_{dtype_name(compute_dtype(dtype))}({warps})")
        out.line("barrier()", "the warps have read what was there before")
        with out.block(f"if thread() % {WARP} == 0:"):
            for name, _, _ in totals:
                out.line(f"{name}h[thread() // {WARP}] = {name}")
        out.line("barrier()")
        for name, _, dtype in totals:
            out.line(f"{name} = {as_value(f'{name}h[0]', compute_dtype(dtype))}")
        with out.block(f"for k in range(1, {warps}):"):
            for name, monoid, dtype in totals:
                other = as_value(f"{name}h[k]", compute_dtype(dtype))
                out.line(f"{name} = {fold_statement(monoid, dtype, name, other, reorder=False)}")
