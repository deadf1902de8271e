"""The calling convention of machine code: a table of 64-bit words, whatever the parameters are.

Import this module only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.backends.llvm.types import F32, NUMBERS


def unpacking_entry(entry: str, body: str, params: Sequence[str], at_end: str = "") -> str:
    """IR of ``void entry(i64* args, i64 start, i64 stop)``: unpacks the table, calls ``body``, and
    does ``at_end``.

    For ``("f32*", "f32")`` it writes::

        %p0 = getelementptr i64, ptr %args, i64 0
        %w0 = load i64, ptr %p0
        %a0 = inttoptr i64 %w0 to ptr
        %p1 = getelementptr i64, ptr %args, i64 1
        %w1 = load i64, ptr %p1
        %t1 = trunc i64 %w1 to i32
        %a1 = bitcast i32 %t1 to float
        call void @"kernel.body"(ptr %a0, float %a1, i64 %start, i64 %stop)
    """
    lines = [f"define void @{entry}(ptr %args, i64 %start, i64 %stop) nounwind {{"]
    passed = []
    for k, name in enumerate(params):
        lines += [f"%p{k} = getelementptr i64, ptr %args, i64 {k}", f"%w{k} = load i64, ptr %p{k}"]
        lines += _decode(k, name)
        passed.append(f"{_llvm_name(name)} %a{k}")
    lines.append(f'call void @"{body}"({", ".join([*passed, "i64 %start", "i64 %stop"])})')
    return "\n".join(["", *lines, at_end, "ret void", "}", ""])


def _llvm_name(name: str) -> str:
    return "ptr" if name.endswith("*") else str(NUMBERS[name].llvm)


def _decode(k: int, name: str) -> list[str]:
    """IR lines that turn word ``%w{k}`` into the argument ``%a{k}``."""
    if name.endswith("*"):
        return [f"%a{k} = inttoptr i64 %w{k} to ptr"]
    if name == "f16":
        bits = [f"%t{k} = trunc i64 %w{k} to i16", f"%h{k} = bitcast i16 %t{k} to half"]
        return [*bits, f"%a{k} = fpext half %h{k} to float"]
    if NUMBERS[name] == F32:
        return [f"%t{k} = trunc i64 %w{k} to i32", f"%a{k} = bitcast i32 %t{k} to float"]
    if name == "f64":
        return [f"%a{k} = bitcast i64 %w{k} to double"]
    if name in ("i64", "u64"):
        return [f"%a{k} = add i64 %w{k}, 0"]
    return [f"%a{k} = trunc i64 %w{k} to {_llvm_name(name)}"]
