"""Modules of contexts of their own end once, in whatever order the garbage collector finalizes them."""

from __future__ import annotations

import gc

import pytest

pytestmark = pytest.mark.numba
TEXT = "define double @f(double %x) {\n ret double %x\n}\n"


class _Cycle:
    def __init__(self, *held: object) -> None:
        self.held, self.itself = held, self


def test_a_context_may_be_finalized_before_its_module() -> None:
    """The context freed the module, which was then freed again: a segmentation fault."""
    from llvmlite import binding

    from jitgrad.backends.llvm import parallel_llvm

    for _ in range(20):
        context = binding.create_context()
        module = parallel_llvm.parsed_in(context, TEXT)
        context.close()
        module.close()
        context = binding.create_context()
        _Cycle(context, parallel_llvm.parsed_in(context, TEXT))
        del context, module
        gc.collect()
