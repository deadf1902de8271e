"""Functions with vector forms: what the loop vectoriser puts in place of calls, with one test for all lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

# vectors of 128, 256 and 512 bits; a loop that mixes formats takes the length of the wider one
VECTOR_LENGTHS: dict[int, tuple[int, ...]] = {32: (2, 4, 8, 16), 64: (2, 4, 8)}


def keep_pure(function: Any) -> None:
    """Let the vectoriser replace ``function``, and keep it in the module until then.

    It is internal, so that compiled modules never share one. LLVM does not count the mention in the
    attribute as a use, so ``llvm.compiler.used`` lists the function.
    """
    module, byte = function.module, ir.IntType(8).as_pointer()
    used = module.globals.get("llvm.compiler.used")
    functions = [*(used.initializer.constant if used is not None else ()), function.bitcast(byte)]
    kind = ir.ArrayType(byte, len(functions))
    if used is None:
        used = ir.GlobalVariable(module, kind, "llvm.compiler.used")
        used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type, used.type = kind, kind.as_pointer()
    used.initializer = ir.Constant(kind, functions)
    for attribute in ("noinline", "nounwind", "optsize", "minsize"):
        function.attributes.add(attribute)
    for attribute in ("memory(none)", "willreturn"):
        set.add(function.attributes, attribute)  # llvmlite's list of names lacks these


def lane_by_lane(builder: Any, scalar: Any, operands: Sequence[Any]) -> Any:
    """A loop over the lanes of ``operands``, of which the last is the usual result, that calls the scalar form; short, as
    every kernel contains it."""
    index, before, usual = ir.IntType(32), builder.block, operands[-1]
    loop, done = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    lane, result = builder.phi(index), builder.phi(usual.type)
    value = builder.call(scalar, [builder.extract_element(v, lane) for v in operands])
    updated, following = builder.insert_element(result, value, lane), builder.add(lane, index(1))
    lane.add_incoming(index(0), before)
    lane.add_incoming(following, loop)
    result.add_incoming(usual, before)
    result.add_incoming(updated, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, index(usual.type.count)), loop, done)
    builder.position_at_end(done)
    return updated
