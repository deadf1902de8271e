; x86_64, pointers as i64*, source f1362448f613d376278d8559e93ccc8f665d2ddc5905ca0e4801d78c019be3af
; ModuleID = "keep"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define internal void @"keep.give_up"(i64 %".1") noinline optsize
{
entry:
  %$1 = mul i64 8, 3
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  %$5 = add i64 69, %$4
  %$6 = mul i64 8, %$5
  %$7 = add i64 %".1", %$6
  %$8 = inttoptr i64 %$7 to i64*
  %$9 = load i64, i64* %$8
  %$10 = icmp sgt i64 %$9, 0
  br i1 %$10, label %"yes", label %"no"
end:
  ret void
yes:
  %$11 = mul i64 8, 4
  %$12 = add i64 %".1", %$11
  %$13 = inttoptr i64 %$12 to i64*
  %$14 = load i64, i64* %$13
  %$15 = add i64 5, %$4
  %$16 = mul i64 8, %$15
  %$17 = add i64 %".1", %$16
  %$18 = inttoptr i64 %$17 to i64*
  %$19 = load i64, i64* %$18
  %$20 = inttoptr i64 %$14 to i32 (i64, i64, i64)*
  %$21 = call i32 %$20(i64 %$19, i64 0, i64 0)
  %$22 = sext i32 %$21 to i64
  %$23 = mul i64 8, 1
  %$24 = add i64 %".1", %$23
  %$25 = inttoptr i64 %$24 to i64*
  %$26 = load i64, i64* %$25
  %$27 = add i64 69, %$4
  %$28 = mul i64 8, %$27
  %$29 = add i64 %".1", %$28
  %$30 = inttoptr i64 %$29 to i64*
  %$31 = load i64, i64* %$30
  %$32 = sub i64 %$26, %$31
  %$33 = mul i64 8, 1
  %$34 = add i64 %".1", %$33
  %$35 = inttoptr i64 %$34 to i64*
  store i64 %$32, i64* %$35
  %$36 = add i64 69, %$4
  %$37 = mul i64 8, %$36
  %$38 = add i64 %".1", %$37
  %$39 = inttoptr i64 %$38 to i64*
  store i64 0, i64* %$39
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$40 = add i64 %$4, 1
  %$41 = srem i64 %$40, 64
  %$42 = xor i64 %$41, 64
  %$43 = icmp slt i64 %$42, 0
  %$44 = icmp ne i64 %$41, 0
  %$45 = and i1 %$43, %$44
  %$46 = select i1 %$45, i64 64, i64 0
  %$47 = add i64 %$41, %$46
  %$48 = mul i64 8, 3
  %$49 = add i64 %".1", %$48
  %$50 = inttoptr i64 %$49 to i64*
  store i64 %$47, i64* %$50
  br label %"end"
}

define internal void @"keep.keep"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") alwaysinline optsize
{
entry:
  %".10" = alloca i64
  %"place" = alloca i64
  %".9" = alloca i64
  %$1 = mul i64 8, 0
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %".7" = cmpxchg i64* %$3, i64 0, i64 1 seq_cst seq_cst
  %".8" = extractvalue {i64, i1} %".7", 1
  %$4 = zext i1 %".8" to i64
  %$5 = icmp ne i64 %$4, 0
  br i1 %$5, label %"yes", label %"no"
end:
  ret void
yes:
  %$6 = mul i64 8, 2
  %$7 = add i64 %".1", %$6
  %$8 = inttoptr i64 %$7 to i64*
  %$9 = load i64, i64* %$8
  %$10 = sub i64 %$9, %".2"
  %$11 = mul i64 8, 2
  %$12 = add i64 %".1", %$11
  %$13 = inttoptr i64 %$12 to i64*
  store i64 %$10, i64* %$13
  %$14 = mul i64 8, 2
  %$15 = add i64 %".1", %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = srem i64 %$17, 2
  %$19 = xor i64 %$18, 2
  %$20 = icmp slt i64 %$19, 0
  %$21 = icmp ne i64 %$18, 0
  %$22 = and i1 %$20, %$21
  %$23 = sdiv i64 %$17, 2
  %$24 = zext i1 %$22 to i64
  %$25 = sub i64 %$23, %$24
  %$26 = icmp sgt i64 %$25, 67108864
  %$27 = select i1 %$26, i64 %$25, i64 67108864
  %$28 = icmp sle i64 %".2", %$27
  br i1 %$28, label %"yes.1", label %"no.1"
no:
  br label %"end.1"
end.1:
  br label %"end"
yes.1:
  store i64 0, i64* %".9"
  br label %"head"
no.1:
  br label %"end.2"
end.2:
  %$78 = mul i64 8, 0
  %$79 = add i64 %".1", %$78
  %$80 = inttoptr i64 %$79 to i64*
  store atomic i64 0, i64* %$80 seq_cst, align 8
  br label %"end.1"
head:
  %$29 = load i64, i64* %".9"
  %$30 = icmp slt i64 %$29, 64
  br i1 %$30, label %"body", label %"end.3"
body:
  %$31 = mul i64 8, 1
  %$32 = add i64 %".1", %$31
  %$33 = inttoptr i64 %$32 to i64*
  %$34 = load i64, i64* %$33
  %$35 = add i64 %$34, %".2"
  %$36 = icmp sgt i64 %$35, %$27
  br i1 %$36, label %"yes.2", label %"no.2"
end.3:
  store i64 -1, i64* %"place"
  store i64 0, i64* %".10"
  br label %"head.1"
yes.2:
  call void @"keep.give_up"(i64 %".1")
  br label %"end.4"
no.2:
  br label %"end.4"
end.4:
  %$37 = add nsw i64 %$29, 1
  store i64 %$37, i64* %".9"
  br label %"head"
head.1:
  %$38 = load i64, i64* %".10"
  %$39 = icmp slt i64 %$38, 64
  br i1 %$39, label %"body.1", label %"end.5"
body.1:
  %$40 = add i64 69, %$38
  %$41 = mul i64 8, %$40
  %$42 = add i64 %".1", %$41
  %$43 = inttoptr i64 %$42 to i64*
  %$44 = load i64, i64* %$43
  %$45 = icmp eq i64 %$44, 0
  br i1 %$45, label %"yes.3", label %"no.3"
end.5:
  %$47 = load i64, i64* %"place"
  %$48 = icmp slt i64 %$47, 0
  br i1 %$48, label %"yes.4", label %"no.4"
yes.3:
  store i64 %$38, i64* %"place"
  br label %"end.6"
no.3:
  br label %"end.6"
end.6:
  %$46 = add nsw i64 %$38, 1
  store i64 %$46, i64* %".10"
  br label %"head.1"
yes.4:
  %$49 = mul i64 8, 3
  %$50 = add i64 %".1", %$49
  %$51 = inttoptr i64 %$50 to i64*
  %$52 = load i64, i64* %$51
  store i64 %$52, i64* %"place"
  call void @"keep.give_up"(i64 %".1")
  br label %"end.7"
no.4:
  br label %"end.7"
end.7:
  %$53 = mul i64 8, 0
  %$54 = add i64 %".3", %$53
  %$55 = inttoptr i64 %$54 to i64*
  %$56 = load i64, i64* %$55
  %$57 = load i64, i64* %"place"
  %$58 = add i64 5, %$57
  %$59 = mul i64 8, %$58
  %$60 = add i64 %".1", %$59
  %$61 = inttoptr i64 %$60 to i64*
  store i64 %$56, i64* %$61
  %$62 = load i64, i64* %"place"
  %$63 = add i64 69, %$62
  %$64 = mul i64 8, %$63
  %$65 = add i64 %".1", %$64
  %$66 = inttoptr i64 %$65 to i64*
  store i64 %".2", i64* %$66
  %$67 = mul i64 8, 1
  %$68 = add i64 %".1", %$67
  %$69 = inttoptr i64 %$68 to i64*
  %$70 = load i64, i64* %$69
  %$71 = add i64 %$70, %".2"
  %$72 = mul i64 8, 1
  %$73 = add i64 %".1", %$72
  %$74 = inttoptr i64 %$73 to i64*
  store i64 %$71, i64* %$74
  %$75 = mul i64 8, 0
  %$76 = add i64 %".3", %$75
  %$77 = inttoptr i64 %$76 to i64*
  store i64 0, i64* %$77
  br label %"end.2"
}

define void @keep(ptr %args, i64 %start, i64 %stop) nounwind {
%p0 = getelementptr i64, ptr %args, i64 0
%w0 = load i64, ptr %p0
%a0 = add i64 %w0, 0
%p1 = getelementptr i64, ptr %args, i64 1
%w1 = load i64, ptr %p1
%a1 = add i64 %w1, 0
%p2 = getelementptr i64, ptr %args, i64 2
%w2 = load i64, ptr %p2
%a2 = add i64 %w2, 0
call void @"keep.keep"(i64 %a0, i64 %a1, i64 %a2, i64 %start, i64 %stop)

ret void
}
