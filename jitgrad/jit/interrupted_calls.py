"""Ctrl-C while a call changes state outside: the call changes all of it, and raises KeyboardInterrupt then.

Python raises it between two instructions, mostly when the program has returned, whose kernels may have written new state
over the old one. The general path does the steps that remain. A fast call is text whose traceback tells the line: the
lines behind that run again, with the variables of its frame.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import CodeType, TracebackType
from typing import Any

from jitgrad.jit.fast_call import FastCall, FastCallWriter
from jitgrad.jit.input_steps import CallState
from jitgrad.runtime.executor.deferred_interrupts import was_deferred

_texts: weakref.WeakKeyDictionary[CodeType, CommitText] = weakref.WeakKeyDictionary()


class CommitText:
    """The text of a fast call from ``run_line`` on, which runs the program; ``turn``: the locks of what it changes."""

    def __init__(self, w: FastCallWriter, turn: AbstractContextManager[Any]) -> None:
        self._text = w.text
        self._names = w.names
        self._run_line = w.run_line
        self._turn = turn

    def go_on(self, traceback: TracebackType) -> None:
        """Do what remains of a call that was interrupted at ``traceback`` of its frame; nothing if it has changed nothing."""
        line, inside = traceback.tb_lineno, traceback.tb_next is not None
        if line < self._run_line or (line == self._run_line and inside):
            return
        statements = ast.parse(self._text).body[0].body  # type: ignore[attr-defined]
        scope = {**self._names, **traceback.tb_frame.f_locals}
        with self._turn:
            while (remaining := _remaining(statements, line, inside)) is not None:
                code = compile(ast.Module(remaining, []), "<jitgrad interrupted call>", "exec")
                try:
                    exec(code, scope)
                    return
                except KeyboardInterrupt as again:
                    found = _frame_of(again, code)
                    line, inside = (found.tb_lineno, found.tb_next is not None) if found is not None else (line, inside)


def _remaining(statements: Sequence[ast.stmt], line: int, inside: bool) -> list[ast.stmt] | None:
    """The statements that have not been done, without the last one, which only returns the result.

    A call without a result at ``line`` is done if the interrupt came not ``inside`` of a Python function.
    """
    k = next((k for k, s in enumerate(statements) if s.lineno <= line <= (s.end_lineno or s.lineno)), len(statements))
    if k == len(statements):
        return None
    done = not inside and not isinstance(statements[k], ast.Assign | ast.For)
    return [s for s in statements[k + done :] if not isinstance(s, ast.Return)]


def _frame_of(error: BaseException, code: CodeType | None) -> TracebackType | None:
    """Where ``error`` came from a frame of ``code``, or of a fast call."""
    traceback = error.__traceback__
    while traceback is not None:
        here = traceback.tb_frame.f_code
        if here is code or (code is None and here in _texts):
            break
        traceback = traceback.tb_next
    return traceback


def remember(fast_call: FastCall, w: FastCallWriter, turn: AbstractContextManager[Any]) -> None:
    """Let `finish` know the text of ``fast_call``, which changes state."""
    _texts[fast_call.__code__] = CommitText(w, turn)


def finish(interrupt: KeyboardInterrupt) -> None:
    """Change all that a fast call would have changed, if it was interrupted while it did."""
    if (traceback := _frame_of(interrupt, None)) is not None:
        _texts[traceback.tb_frame.f_code].go_on(traceback)


def complete(steps: Sequence[Any], call: CallState) -> None:
    """Do all ``steps`` of a call whose program has run; an interrupt is deferred, and the step that it stopped done again."""
    k = 0
    while k < len(steps):
        try:
            while k < len(steps):
                steps[k].run(call)
                k += 1
        except KeyboardInterrupt as interrupt:
            if not was_deferred(interrupt):
                raise
