"""Sums of rows in NumPy's order, and so with its bits, in a third of its time.

NumPy adds up eight partial sums of at most 128 elements, and halves longer rows (``pairwise_sum`` of its
``loops_utils.h``). The partial sums are the lanes of a vector. An addition takes four cycles, and NumPy waits for each of
them; here up to four parts of a row are added up side by side.
"""

from __future__ import annotations

from jitgrad.backends.llvm.code_object import CodeObject, compile_ir
from jitgrad.core.aval import Dtype

_PARTS = 128  # elements that NumPy adds up without halving them


def compile_row_sums(dtype: Dtype) -> CodeObject:
    """``kernel(x, y, n, start, stop)``: ``y[r] = sum(x[r * n:(r + 1) * n])`` for rows of ``dtype``, float32 or float64."""
    text = _TEXT.replace("FLOAT", "float" if dtype.itemsize == 4 else "double").replace("SIZE", str(dtype.itemsize))
    return compile_ir(text.replace("LONGEST", str(_PARTS)), "row_sums", key="")


def _leaves(count: int) -> str:
    """``@sum{count}``: the sum of a row that NumPy halves into ``count`` parts, all of which have eight elements or more.

    The loop over ``common`` vectors adds to all parts; what is left of each follows on its own.
    """
    halves = {
        1: ["%a0 = getelementptr FLOAT, ptr %x, i64 0", "%n0 = add i64 %n, 0"],
        2: _halving("%x", "%n", "0", "1"),
        4: [*_halving("%x", "%n", "l", "r"), *_halving("%al", "%nl", "0", "1"), *_halving("%ar", "%nr", "2", "3")],
    }[count]
    lines = [f"define internal FLOAT @sum{count}(ptr %x, i64 %n) nounwind {{", "entry:", *halves]
    least = "%v0"
    for k in range(count):
        lines += [f"%v{k} = lshr i64 %n{k}, 3", f"%f{k} = load <8 x FLOAT>, ptr %a{k}, align SIZE"]
        if k:
            lines += [f"%c{k} = icmp ult i64 %v{k}, {least}", f"%m{k} = select i1 %c{k}, i64 %v{k}, i64 {least}"]
            least = f"%m{k}"
    lines += [f"%any = icmp ugt i64 {least}, 1", "br i1 %any, label %loop, label %done", "loop:"]
    lines.append("%i = phi i64 [ 1, %entry ], [ %next, %loop ]")
    lines += [f"%s{k} = phi <8 x FLOAT> [ %f{k}, %entry ], [ %t{k}, %loop ]" for k in range(count)]
    lines.append("%e = shl i64 %i, 3")
    for k in range(count):
        lines += [f"%p{k} = getelementptr FLOAT, ptr %a{k}, i64 %e", f"%x{k} = load <8 x FLOAT>, ptr %p{k}, align SIZE"]
        lines.append(f"%t{k} = fadd <8 x FLOAT> %s{k}, %x{k}")
    lines += ["%next = add i64 %i, 1", f"%more = icmp ult i64 %next, {least}", "br i1 %more, label %loop, label %done"]
    lines += ["done:", "%from = phi i64 [ 1, %entry ], [ %next, %loop ]"]
    lines += [f"%w{k} = phi <8 x FLOAT> [ %f{k}, %entry ], [ %t{k}, %loop ]" for k in range(count)]
    lines += [f"%r{k} = call FLOAT @rest(ptr %a{k}, i64 %n{k}, i64 %from, <8 x FLOAT> %w{k})" for k in range(count)]
    sums = {1: "%r0", 2: "%u", 4: "%u"}[count]
    if count == 4:
        lines += ["%u0 = fadd FLOAT %r0, %r1", "%u1 = fadd FLOAT %r2, %r3", "%u = fadd FLOAT %u0, %u1"]
    elif count == 2:
        lines.append("%u = fadd FLOAT %r0, %r1")
    return "\n".join([*lines, f"ret FLOAT {sums}", "}", ""])


def _halving(x: str, n: str, left: str, right: str) -> list[str]:
    """The addresses and lengths of the halves of ``n`` elements at ``x``, the left one of a multiple of eight."""
    return [
        f"%h{left} = lshr i64 {n}, 1",
        f"%n{left} = and i64 %h{left}, -8",
        f"%n{right} = sub i64 {n}, %n{left}",
        f"%a{left} = getelementptr FLOAT, ptr {x}, i64 0",
        f"%a{right} = getelementptr FLOAT, ptr {x}, i64 %n{left}",
    ]


_REST = """
define internal FLOAT @rest(ptr %x, i64 %n, i64 %from, <8 x FLOAT> %first) nounwind alwaysinline {
entry:
  %vectors = lshr i64 %n, 3
  %any = icmp ult i64 %from, %vectors
  br i1 %any, label %loop, label %fold
loop:
  %i = phi i64 [ %from, %entry ], [ %next, %loop ]
  %s = phi <8 x FLOAT> [ %first, %entry ], [ %t, %loop ]
  %e = shl i64 %i, 3
  %p = getelementptr FLOAT, ptr %x, i64 %e
  %v = load <8 x FLOAT>, ptr %p, align SIZE
  %t = fadd <8 x FLOAT> %s, %v
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %vectors
  br i1 %more, label %loop, label %fold
fold:
  %w = phi <8 x FLOAT> [ %first, %entry ], [ %t, %loop ]
  %even = shufflevector <8 x FLOAT> %w, <8 x FLOAT> undef, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %odd = shufflevector <8 x FLOAT> %w, <8 x FLOAT> undef, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %pairs = fadd <4 x FLOAT> %even, %odd
  %low = shufflevector <4 x FLOAT> %pairs, <4 x FLOAT> undef, <2 x i32> <i32 0, i32 2>
  %high = shufflevector <4 x FLOAT> %pairs, <4 x FLOAT> undef, <2 x i32> <i32 1, i32 3>
  %fours = fadd <2 x FLOAT> %low, %high
  %left = extractelement <2 x FLOAT> %fours, i32 0
  %right = extractelement <2 x FLOAT> %fours, i32 1
  %eight = fadd FLOAT %left, %right
  %whole = and i64 %n, -8
  %sum = call FLOAT @few(ptr %x, i64 %whole, i64 %n, FLOAT %eight)
  ret FLOAT %sum
}
define internal FLOAT @few(ptr %x, i64 %from, i64 %n, FLOAT %first) nounwind {
entry:
  %any = icmp ult i64 %from, %n
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %from, %entry ], [ %next, %loop ]
  %s = phi FLOAT [ %first, %entry ], [ %t, %loop ]
  %p = getelementptr FLOAT, ptr %x, i64 %i
  %v = load FLOAT, ptr %p
  %t = fadd FLOAT %s, %v
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %sum = phi FLOAT [ %first, %entry ], [ %t, %loop ]
  ret FLOAT %sum
}
"""
_ROWS = """
define internal FLOAT @pairwise(ptr %x, i64 %n) nounwind {
  %tiny = icmp ult i64 %n, 8
  br i1 %tiny, label %few, label %long
few:
  %f = call FLOAT @few(ptr %x, i64 0, i64 %n, FLOAT -0.0)
  ret FLOAT %f
long:
  %above1 = icmp ugt i64 %n, LONGEST
  br i1 %above1, label %two, label %one
one:
  %s1 = call FLOAT @sum1(ptr %x, i64 %n)
  ret FLOAT %s1
two:
  %h = lshr i64 %n, 1
  %left = and i64 %h, -8
  %right = sub i64 %n, %left
  %above2 = icmp ugt i64 %right, LONGEST
  br i1 %above2, label %four, label %pair
pair:
  %s2 = call FLOAT @sum2(ptr %x, i64 %n)
  ret FLOAT %s2
four:
  %both = icmp ugt i64 %left, LONGEST
  %lh = lshr i64 %left, 1
  %ll = and i64 %lh, -8
  %lr = sub i64 %left, %ll
  %rh = lshr i64 %right, 1
  %rl = and i64 %rh, -8
  %rr = sub i64 %right, %rl
  %lfits = icmp ule i64 %lr, LONGEST
  %rfits = icmp ule i64 %rr, LONGEST
  %fit = and i1 %lfits, %rfits
  %is4 = and i1 %both, %fit
  br i1 %is4, label %quad, label %halves
quad:
  %s4 = call FLOAT @sum4(ptr %x, i64 %n)
  ret FLOAT %s4
halves:
  %middle = getelementptr FLOAT, ptr %x, i64 %left
  %a = call FLOAT @pairwise(ptr %x, i64 %left)
  %b = call FLOAT @pairwise(ptr %middle, i64 %right)
  %s = fadd FLOAT %a, %b
  ret FLOAT %s
}
define void @row_sums(ptr %args, i64 %start, i64 %stop) nounwind {
entry:
  %x = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %y = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %args, i64 2
  %n = load i64, ptr %p2
  %any = icmp slt i64 %start, %stop
  br i1 %any, label %loop, label %done
loop:
  %r = phi i64 [ %start, %entry ], [ %next, %loop ]
  %e = mul i64 %r, %n
  %row = getelementptr FLOAT, ptr %x, i64 %e
  %s = call FLOAT @pairwise(ptr %row, i64 %n)
  %t = fadd FLOAT %s, 0.0
  %out = getelementptr FLOAT, ptr %y, i64 %r
  store FLOAT %t, ptr %out
  %next = add i64 %r, 1
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
_TEXT = "\n".join([*[_leaves(count) for count in (1, 2, 4)], _REST, _ROWS])
