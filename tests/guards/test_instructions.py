"""Instructions of the running Python, and what the observer of a traced function makes of those it does not know."""

from __future__ import annotations

import dis
import opcode

import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from jitgrad.guards.opcodes import HANDLERS

SCALE = 0.5


def test_an_instruction_that_nobody_knows_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer Python may read something from outside by it, and no guard would watch that."""
    monkeypatch.delitem(HANDLERS, "BINARY_OP")
    step = jg.jit(lambda x: x * SCALE)

    with pytest.raises(UnguardableError, match=r"follow what BINARY_OP reads.*an instruction of Python 3\.\d+ that is new"):
        step(jg.ones(2))


def test_all_instructions_of_this_python_are_known() -> None:
    specialised = {name for names in getattr(opcode, "_specializations", {}).values() for name in names}
    internal = {"ENTER_EXECUTOR", "EXIT_INIT_CHECK", "PRINT_EXPR", "RESERVED", "BUILD_INTERPOLATION", "BUILD_TEMPLATE"}
    compiled = {name for name, number in dis.opmap.items() if number < 256 and "INSTRUMENTED" not in name}

    assert compiled - specialised - internal <= {*HANDLERS}
