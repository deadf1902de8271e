; x86_64, pointers as i64*, source ca54474c10bedfed56a74e064703e2fe7186b0bd6cb75058e9158e86ebcf2028
; ModuleID = "loop"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define internal void @"loop.gemm"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8") noinline optsize
{
entry:
  %$1 = icmp eq i64 %".1", 1
  br i1 %$1, label %"yes", label %"no"
end:
  ret void
yes:
  %$2 = mul i64 8, 3
  %$3 = add i64 %".3", %$2
  %$4 = inttoptr i64 %$3 to i64*
  %$5 = load i64, i64* %$4
  %$6 = icmp ne i64 %$5, 0
  %$7 = select i1 %$6, i32 112, i32 111
  %$8 = mul i64 8, 4
  %$9 = add i64 %".3", %$8
  %$10 = inttoptr i64 %$9 to i64*
  %$11 = load i64, i64* %$10
  %$12 = icmp ne i64 %$11, 0
  %$13 = select i1 %$12, i32 112, i32 111
  %$14 = mul i64 8, 2
  %$15 = add i64 %".3", %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = mul i64 8, 5
  %$19 = add i64 %".3", %$18
  %$20 = inttoptr i64 %$19 to i64*
  %$21 = load i64, i64* %$20
  %$22 = trunc i64 %$21 to i32
  %$23 = bitcast i32 %$22 to float
  %$24 = mul i64 8, 7
  %$25 = add i64 %".3", %$24
  %$26 = inttoptr i64 %$25 to i64*
  %$27 = load i64, i64* %$26
  %$28 = mul i64 8, 9
  %$29 = add i64 %".3", %$28
  %$30 = inttoptr i64 %$29 to i64*
  %$31 = load i64, i64* %$30
  %$32 = mul i64 8, 10
  %$33 = add i64 %".3", %$32
  %$34 = inttoptr i64 %$33 to i64*
  %$35 = load i64, i64* %$34
  %$36 = trunc i64 %$35 to i32
  %$37 = bitcast i32 %$36 to float
  %$38 = mul i64 8, 12
  %$39 = add i64 %".3", %$38
  %$40 = inttoptr i64 %$39 to i64*
  %$41 = load i64, i64* %$40
  %$42 = inttoptr i64 %".2" to void (i32, i32, i32, i64, i64, i64, float, i64, i64, i64, i64, float, i64, i64)*
  call void %$42(i32 101, i32 %$7, i32 %$13, i64 %".4", i64 %".5", i64 %$17, float %$23, i64 %".6", i64 %$27, i64 %".7", i64 %$31, float %$37, i64 %".8", i64 %$41)
  br label %"end.1"
no:
  %$43 = mul i64 8, 3
  %$44 = add i64 %".3", %$43
  %$45 = inttoptr i64 %$44 to i64*
  %$46 = load i64, i64* %$45
  %$47 = icmp ne i64 %$46, 0
  %$48 = select i1 %$47, i32 112, i32 111
  %$49 = mul i64 8, 4
  %$50 = add i64 %".3", %$49
  %$51 = inttoptr i64 %$50 to i64*
  %$52 = load i64, i64* %$51
  %$53 = icmp ne i64 %$52, 0
  %$54 = select i1 %$53, i32 112, i32 111
  %$55 = mul i64 8, 2
  %$56 = add i64 %".3", %$55
  %$57 = inttoptr i64 %$56 to i64*
  %$58 = load i64, i64* %$57
  %$59 = mul i64 8, 5
  %$60 = add i64 %".3", %$59
  %$61 = inttoptr i64 %$60 to i64*
  %$62 = load i64, i64* %$61
  %$63 = bitcast i64 %$62 to double
  %$64 = mul i64 8, 7
  %$65 = add i64 %".3", %$64
  %$66 = inttoptr i64 %$65 to i64*
  %$67 = load i64, i64* %$66
  %$68 = mul i64 8, 9
  %$69 = add i64 %".3", %$68
  %$70 = inttoptr i64 %$69 to i64*
  %$71 = load i64, i64* %$70
  %$72 = mul i64 8, 10
  %$73 = add i64 %".3", %$72
  %$74 = inttoptr i64 %$73 to i64*
  %$75 = load i64, i64* %$74
  %$76 = bitcast i64 %$75 to double
  %$77 = mul i64 8, 12
  %$78 = add i64 %".3", %$77
  %$79 = inttoptr i64 %$78 to i64*
  %$80 = load i64, i64* %$79
  %$81 = inttoptr i64 %".2" to void (i32, i32, i32, i64, i64, i64, double, i64, i64, i64, i64, double, i64, i64)*
  call void %$81(i32 101, i32 %$48, i32 %$54, i64 %".4", i64 %".5", i64 %$58, double %$63, i64 %".6", i64 %$67, i64 %".7", i64 %$71, double %$76, i64 %".8", i64 %$80)
  br label %"end.1"
end.1:
  br label %"end"
}

define internal void @"loop.rows"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") noinline optsize
{
entry:
  %"step" = alloca i64
  %"item" = alloca i64
  store i64 8, i64* %"item"
  %$1 = icmp eq i64 %".1", 1
  br i1 %$1, label %"yes", label %"no"
end:
  ret void
yes:
  store i64 4, i64* %"item"
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$2 = load i64, i64* %"item"
  store i64 %$2, i64* %"step"
  %$3 = mul i64 8, 3
  %$4 = add i64 %".3", %$3
  %$5 = inttoptr i64 %$4 to i64*
  %$6 = load i64, i64* %$5
  %$7 = icmp eq i64 %$6, 0
  br i1 %$7, label %"yes.1", label %"no.1"
yes.1:
  %$8 = load i64, i64* %"item"
  %$9 = mul i64 8, 7
  %$10 = add i64 %".3", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = mul i64 %$8, %$12
  store i64 %$13, i64* %"step"
  br label %"end.2"
no.1:
  br label %"end.2"
end.2:
  %$14 = sub i64 %".5", %".4"
  %$15 = mul i64 8, 1
  %$16 = add i64 %".3", %$15
  %$17 = inttoptr i64 %$16 to i64*
  %$18 = load i64, i64* %$17
  %$19 = mul i64 8, 6
  %$20 = add i64 %".3", %$19
  %$21 = inttoptr i64 %$20 to i64*
  %$22 = load i64, i64* %$21
  %$23 = load i64, i64* %"step"
  %$24 = mul i64 %".4", %$23
  %$25 = add i64 %$22, %$24
  %$26 = mul i64 8, 8
  %$27 = add i64 %".3", %$26
  %$28 = inttoptr i64 %$27 to i64*
  %$29 = load i64, i64* %$28
  %$30 = mul i64 8, 11
  %$31 = add i64 %".3", %$30
  %$32 = inttoptr i64 %$31 to i64*
  %$33 = load i64, i64* %$32
  %$34 = load i64, i64* %"item"
  %$35 = mul i64 %".4", %$34
  %$36 = mul i64 8, 12
  %$37 = add i64 %".3", %$36
  %$38 = inttoptr i64 %$37 to i64*
  %$39 = load i64, i64* %$38
  %$40 = mul i64 %$35, %$39
  %$41 = add i64 %$33, %$40
  call void @"loop.gemm"(i64 %".1", i64 %".2", i64 %".3", i64 %$14, i64 %$18, i64 %$25, i64 %$29, i64 %$41)
  br label %"end"
}

define internal void @"loop.gemm_block"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") alwaysinline optsize
{
entry:
  %"step" = alloca i64
  %".7" = alloca i64
  %"item" = alloca i64
  store i64 8, i64* %"item"
  %$1 = icmp eq i64 %".1", 1
  br i1 %$1, label %"yes", label %"no"
end:
  ret void
yes:
  store i64 4, i64* %"item"
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$2 = mul i64 8, 13
  %$3 = add i64 %".3", %$2
  %$4 = inttoptr i64 %$3 to i64*
  %$5 = load i64, i64* %$4
  %$6 = icmp sgt i64 %$5, 1
  br i1 %$6, label %"yes.1", label %"no.1"
yes.1:
  store i64 %".4", i64* %".7"
  br label %"head"
no.1:
  %$48 = mul i64 8, 0
  %$49 = add i64 %".3", %$48
  %$50 = inttoptr i64 %$49 to i64*
  %$51 = load i64, i64* %$50
  %$52 = mul i64 8, 1
  %$53 = add i64 %".3", %$52
  %$54 = inttoptr i64 %$53 to i64*
  %$55 = load i64, i64* %$54
  %$56 = icmp sge i64 %$51, %$55
  br i1 %$56, label %"yes.2", label %"no.2"
end.2:
  br label %"end"
head:
  %$7 = load i64, i64* %".7"
  %$8 = icmp slt i64 %$7, %".5"
  br i1 %$8, label %"body", label %"end.3"
body:
  %$9 = mul i64 8, 0
  %$10 = add i64 %".3", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = mul i64 8, 1
  %$14 = add i64 %".3", %$13
  %$15 = inttoptr i64 %$14 to i64*
  %$16 = load i64, i64* %$15
  %$17 = mul i64 8, 6
  %$18 = add i64 %".3", %$17
  %$19 = inttoptr i64 %$18 to i64*
  %$20 = load i64, i64* %$19
  %$21 = mul i64 8, 14
  %$22 = add i64 %".3", %$21
  %$23 = inttoptr i64 %$22 to i64*
  %$24 = load i64, i64* %$23
  %$25 = mul i64 %$7, %$24
  %$26 = add i64 %$20, %$25
  %$27 = mul i64 8, 8
  %$28 = add i64 %".3", %$27
  %$29 = inttoptr i64 %$28 to i64*
  %$30 = load i64, i64* %$29
  %$31 = mul i64 8, 15
  %$32 = add i64 %".3", %$31
  %$33 = inttoptr i64 %$32 to i64*
  %$34 = load i64, i64* %$33
  %$35 = mul i64 %$7, %$34
  %$36 = add i64 %$30, %$35
  %$37 = mul i64 8, 11
  %$38 = add i64 %".3", %$37
  %$39 = inttoptr i64 %$38 to i64*
  %$40 = load i64, i64* %$39
  %$41 = mul i64 8, 16
  %$42 = add i64 %".3", %$41
  %$43 = inttoptr i64 %$42 to i64*
  %$44 = load i64, i64* %$43
  %$45 = mul i64 %$7, %$44
  %$46 = add i64 %$40, %$45
  call void @"loop.gemm"(i64 %".1", i64 %".2", i64 %".3", i64 %$12, i64 %$16, i64 %$26, i64 %$36, i64 %$46)
  %$47 = add nsw i64 %$7, 1
  store i64 %$47, i64* %".7"
  br label %"head"
end.3:
  br label %"end.2"
yes.2:
  call void @"loop.rows"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5")
  br label %"end.4"
no.2:
  %$57 = load i64, i64* %"item"
  store i64 %$57, i64* %"step"
  %$58 = mul i64 8, 4
  %$59 = add i64 %".3", %$58
  %$60 = inttoptr i64 %$59 to i64*
  %$61 = load i64, i64* %$60
  %$62 = icmp ne i64 %$61, 0
  br i1 %$62, label %"yes.3", label %"no.3"
end.4:
  br label %"end.2"
yes.3:
  %$63 = load i64, i64* %"item"
  %$64 = mul i64 8, 9
  %$65 = add i64 %".3", %$64
  %$66 = inttoptr i64 %$65 to i64*
  %$67 = load i64, i64* %$66
  %$68 = mul i64 %$63, %$67
  store i64 %$68, i64* %"step"
  br label %"end.5"
no.3:
  br label %"end.5"
end.5:
  %$69 = mul i64 8, 0
  %$70 = add i64 %".3", %$69
  %$71 = inttoptr i64 %$70 to i64*
  %$72 = load i64, i64* %$71
  %$73 = sub i64 %".5", %".4"
  %$74 = mul i64 8, 6
  %$75 = add i64 %".3", %$74
  %$76 = inttoptr i64 %$75 to i64*
  %$77 = load i64, i64* %$76
  %$78 = mul i64 8, 8
  %$79 = add i64 %".3", %$78
  %$80 = inttoptr i64 %$79 to i64*
  %$81 = load i64, i64* %$80
  %$82 = load i64, i64* %"step"
  %$83 = mul i64 %".4", %$82
  %$84 = add i64 %$81, %$83
  %$85 = mul i64 8, 11
  %$86 = add i64 %".3", %$85
  %$87 = inttoptr i64 %$86 to i64*
  %$88 = load i64, i64* %$87
  %$89 = load i64, i64* %"item"
  %$90 = mul i64 %".4", %$89
  %$91 = add i64 %$88, %$90
  call void @"loop.gemm"(i64 %".1", i64 %".2", i64 %".3", i64 %$72, i64 %$73, i64 %$77, i64 %$84, i64 %$91)
  br label %"end.4"
}

define internal void @"loop.row_block"(i64 %".1", i64 %".2", i64 %".3", i64 %".4") alwaysinline optsize
{
entry:
  %".6" = alloca i64
  store i64 0, i64* %".6"
  br label %"head"
end:
  ret void
head:
  %$1 = load i64, i64* %".6"
  %$2 = icmp slt i64 %$1, %".1"
  br i1 %$2, label %"body", label %"end.1"
body:
  %$3 = mul i64 %$1, 64
  %$4 = add i64 %".2", %$3
  %$5 = mul i64 8, 0
  %$6 = add i64 %$4, %$5
  %$7 = inttoptr i64 %$6 to i64*
  %$8 = load i64, i64* %$7
  %$9 = icmp eq i64 %$8, 0
  br i1 %$9, label %"yes", label %"no"
end.1:
  br label %"end"
yes:
  %$10 = mul i64 8, 1
  %$11 = add i64 %$4, %$10
  %$12 = inttoptr i64 %$11 to i64*
  %$13 = load i64, i64* %$12
  %$14 = mul i64 8, 2
  %$15 = add i64 %$4, %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = mul i64 8, 5
  %$19 = add i64 %$4, %$18
  %$20 = inttoptr i64 %$19 to i64*
  %$21 = load i64, i64* %$20
  %$22 = mul i64 %".3", %$21
  %$23 = mul i64 8, 5
  %$24 = add i64 %$4, %$23
  %$25 = inttoptr i64 %$24 to i64*
  %$26 = load i64, i64* %$25
  %$27 = mul i64 %".4", %$26
  %$28 = inttoptr i64 %$17 to i64*
  %$29 = inttoptr i64 %$13 to void (i64*, i64, i64)*
  call void %$29(i64* %$28, i64 %$22, i64 %$27)
  br label %"end.2"
no:
  %$30 = mul i64 8, 0
  %$31 = add i64 %$4, %$30
  %$32 = inttoptr i64 %$31 to i64*
  %$33 = load i64, i64* %$32
  %$34 = mul i64 8, 1
  %$35 = add i64 %$4, %$34
  %$36 = inttoptr i64 %$35 to i64*
  %$37 = load i64, i64* %$36
  %$38 = mul i64 8, 2
  %$39 = add i64 %$4, %$38
  %$40 = inttoptr i64 %$39 to i64*
  %$41 = load i64, i64* %$40
  call void @"loop.rows"(i64 %$33, i64 %$37, i64 %$41, i64 %".3", i64 %".4")
  br label %"end.2"
end.2:
  %$42 = add nsw i64 %$1, 1
  store i64 %$42, i64* %".6"
  br label %"head"
}

define internal void @"loop.local_block"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") alwaysinline optsize
{
entry:
  %".11" = alloca i64
  %".10" = alloca i64
  %".9" = alloca i64
  %"k" = alloca i64
  %"space" = alloca i64
  %$1 = mul i64 8, 2
  %$2 = add i64 %".2", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  %$5 = mul i64 8, 0
  %$6 = add i64 %$4, %$5
  %$7 = inttoptr i64 %$6 to i64*
  %$8 = load i64, i64* %$7
  %$9 = mul i64 8, 6
  %$10 = add i64 %$4, %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  store i64 %$12, i64* %"space"
  store i64 0, i64* %"k"
  br label %"head"
end:
  ret void
head:
  %$13 = load i64, i64* %"space"
  %$14 = mul i64 8, 0
  %$15 = add i64 %$13, %$14
  %$16 = inttoptr i64 %$15 to i64*
  %".7" = cmpxchg i64* %$16, i64 0, i64 1 seq_cst seq_cst
  %".8" = extractvalue {i64, i1} %".7", 1
  %$17 = zext i1 %".8" to i64
  %$18 = icmp ne i64 %$17, 0
  br i1 %$18, label %"end.1", label %"body"
body:
  %$19 = load i64, i64* %"k"
  %$20 = add i64 %$19, 1
  store i64 %$20, i64* %"k"
  %$21 = load i64, i64* %"space"
  %$22 = mul i64 8, 7
  %$23 = add i64 %$4, %$22
  %$24 = inttoptr i64 %$23 to i64*
  %$25 = load i64, i64* %$24
  %$26 = add i64 %$21, %$25
  store i64 %$26, i64* %"space"
  %$27 = load i64, i64* %"k"
  %$28 = mul i64 8, 8
  %$29 = add i64 %$4, %$28
  %$30 = inttoptr i64 %$29 to i64*
  %$31 = load i64, i64* %$30
  %$32 = srem i64 %$27, %$31
  %$33 = xor i64 %$32, %$31
  %$34 = icmp slt i64 %$33, 0
  %$35 = icmp ne i64 %$32, 0
  %$36 = and i1 %$34, %$35
  %$37 = select i1 %$36, i64 %$31, i64 0
  %$38 = add i64 %$32, %$37
  %$39 = icmp eq i64 %$38, 0
  br i1 %$39, label %"yes", label %"no"
end.1:
  %$44 = load i64, i64* %"space"
  %$45 = add i64 %$44, 64
  %$46 = mul i64 8, 1
  %$47 = add i64 %$4, %$46
  %$48 = inttoptr i64 %$47 to i64*
  %$49 = load i64, i64* %$48
  store i64 0, i64* %".9"
  br label %"head.1"
yes:
  %$40 = mul i64 8, 6
  %$41 = add i64 %$4, %$40
  %$42 = inttoptr i64 %$41 to i64*
  %$43 = load i64, i64* %$42
  store i64 %$43, i64* %"space"
  call void @"llvm.x86.sse2.pause"()
  br label %"end.2"
no:
  br label %"end.2"
end.2:
  br label %"head"
head.1:
  %$50 = load i64, i64* %".9"
  %$51 = icmp slt i64 %$50, %$49
  br i1 %$51, label %"body.1", label %"end.3"
body.1:
  store i64 %$50, i64* %"k"
  %$52 = load i64, i64* %"k"
  %$53 = mul i64 8, %$52
  %$54 = add i64 %$8, %$53
  %$55 = inttoptr i64 %$54 to i64*
  %$56 = load i64, i64* %$55
  %$57 = load i64, i64* %"k"
  %$58 = mul i64 8, %$57
  %$59 = add i64 %$45, %$58
  %$60 = inttoptr i64 %$59 to i64*
  store i64 %$56, i64* %$60
  %$61 = add nsw i64 %$50, 1
  store i64 %$61, i64* %".9"
  br label %"head.1"
end.3:
  %$62 = mul i64 8, 1
  %$63 = add i64 %$4, %$62
  %$64 = inttoptr i64 %$63 to i64*
  %$65 = load i64, i64* %$64
  %$66 = mul i64 %$65, 8
  %$67 = add i64 %$66, 63
  %$68 = srem i64 %$67, 64
  %$69 = xor i64 %$68, 64
  %$70 = icmp slt i64 %$69, 0
  %$71 = icmp ne i64 %$68, 0
  %$72 = and i1 %$70, %$71
  %$73 = sdiv i64 %$67, 64
  %$74 = zext i1 %$72 to i64
  %$75 = sub i64 %$73, %$74
  %$76 = mul i64 %$75, 64
  %$77 = add i64 %$45, %$76
  %$78 = mul i64 8, 2
  %$79 = add i64 %$4, %$78
  %$80 = inttoptr i64 %$79 to i64*
  %$81 = load i64, i64* %$80
  %$82 = mul i64 8, 3
  %$83 = add i64 %$4, %$82
  %$84 = inttoptr i64 %$83 to i64*
  %$85 = load i64, i64* %$84
  %$86 = mul i64 8, 4
  %$87 = add i64 %$4, %$86
  %$88 = inttoptr i64 %$87 to i64*
  %$89 = load i64, i64* %$88
  %$90 = mul i64 8, 5
  %$91 = add i64 %$4, %$90
  %$92 = inttoptr i64 %$91 to i64*
  %$93 = load i64, i64* %$92
  store i64 0, i64* %".10"
  br label %"head.2"
head.2:
  %$94 = load i64, i64* %".10"
  %$95 = icmp slt i64 %$94, %$93
  br i1 %$95, label %"body.2", label %"end.4"
body.2:
  store i64 %$94, i64* %"k"
  %$96 = load i64, i64* %"k"
  %$97 = mul i64 8, %$96
  %$98 = add i64 %$85, %$97
  %$99 = inttoptr i64 %$98 to i64*
  %$100 = load i64, i64* %$99
  %$101 = add i64 %$77, %$100
  %$102 = load i64, i64* %"k"
  %$103 = mul i64 8, %$102
  %$104 = add i64 %$89, %$103
  %$105 = inttoptr i64 %$104 to i64*
  %$106 = load i64, i64* %$105
  %$107 = mul i64 %".5", %$106
  %$108 = sub i64 %$101, %$107
  %$109 = load i64, i64* %"k"
  %$110 = mul i64 8, %$109
  %$111 = add i64 %$81, %$110
  %$112 = inttoptr i64 %$111 to i64*
  %$113 = load i64, i64* %$112
  %$114 = mul i64 8, %$113
  %$115 = add i64 %$45, %$114
  %$116 = inttoptr i64 %$115 to i64*
  store i64 %$108, i64* %$116
  %$117 = add nsw i64 %$94, 1
  store i64 %$117, i64* %".10"
  br label %"head.2"
end.4:
  store i64 0, i64* %".11"
  br label %"head.3"
head.3:
  %$118 = load i64, i64* %".11"
  %$119 = icmp slt i64 %$118, %".1"
  br i1 %$119, label %"body.3", label %"end.5"
body.3:
  store i64 %$118, i64* %"k"
  %$120 = load i64, i64* %"k"
  %$121 = add i64 %$120, 1
  %$122 = mul i64 %$121, 64
  %$123 = add i64 %".2", %$122
  %$124 = mul i64 8, 1
  %$125 = add i64 %$123, %$124
  %$126 = inttoptr i64 %$125 to i64*
  %$127 = load i64, i64* %$126
  %$128 = mul i64 8, 2
  %$129 = add i64 %$123, %$128
  %$130 = inttoptr i64 %$129 to i64*
  %$131 = load i64, i64* %$130
  %$132 = sub i64 %$131, %$8
  %$133 = add i64 %$45, %$132
  %$134 = mul i64 8, 5
  %$135 = add i64 %$123, %$134
  %$136 = inttoptr i64 %$135 to i64*
  %$137 = load i64, i64* %$136
  %$138 = mul i64 %".3", %$137
  %$139 = mul i64 8, 5
  %$140 = add i64 %$123, %$139
  %$141 = inttoptr i64 %$140 to i64*
  %$142 = load i64, i64* %$141
  %$143 = mul i64 %".4", %$142
  %$144 = inttoptr i64 %$133 to i64*
  %$145 = inttoptr i64 %$127 to void (i64*, i64, i64)*
  call void %$145(i64* %$144, i64 %$138, i64 %$143)
  %$146 = add nsw i64 %$118, 1
  store i64 %$146, i64* %".11"
  br label %"head.3"
end.5:
  %$147 = load i64, i64* %"space"
  %$148 = mul i64 8, 0
  %$149 = add i64 %$147, %$148
  %$150 = inttoptr i64 %$149 to i64*
  store atomic i64 0, i64* %$150 seq_cst, align 8
  br label %"end"
}

define internal void @"loop.run_block"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6") noinline optsize
{
entry:
  %"stop" = alloca i64
  %$1 = add i64 %".6", 1
  %$2 = mul i64 %$1, %".5"
  store i64 %$2, i64* %"stop"
  %$3 = load i64, i64* %"stop"
  %$4 = icmp sgt i64 %$3, %".4"
  br i1 %$4, label %"yes", label %"no"
end:
  ret void
yes:
  store i64 %".4", i64* %"stop"
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$5 = icmp eq i64 %".1", 0
  br i1 %$5, label %"yes.1", label %"no.1"
yes.1:
  %$6 = mul i64 %".6", %".5"
  %$7 = load i64, i64* %"stop"
  %$8 = inttoptr i64 %".3" to i64*
  %$9 = inttoptr i64 %".2" to void (i64*, i64, i64)*
  call void %$9(i64* %$8, i64 %$6, i64 %$7)
  br label %"end.2"
no.1:
  %$10 = icmp eq i64 %".1", 4
  br i1 %$10, label %"yes.2", label %"no.2"
end.2:
  br label %"end"
yes.2:
  %$11 = mul i64 %".6", %".5"
  %$12 = load i64, i64* %"stop"
  call void @"loop.row_block"(i64 %".2", i64 %".3", i64 %$11, i64 %$12)
  br label %"end.3"
no.2:
  %$13 = icmp eq i64 %".1", 6
  br i1 %$13, label %"yes.3", label %"no.3"
end.3:
  br label %"end.2"
yes.3:
  %$14 = mul i64 %".6", %".5"
  %$15 = load i64, i64* %"stop"
  call void @"loop.local_block"(i64 %".2", i64 %".3", i64 %$14, i64 %$15, i64 %".6")
  br label %"end.4"
no.3:
  %$16 = mul i64 %".6", %".5"
  %$17 = load i64, i64* %"stop"
  call void @"loop.gemm_block"(i64 %".1", i64 %".2", i64 %".3", i64 %$16, i64 %$17)
  br label %"end.4"
end.4:
  br label %"end.3"
}

define internal i64 @"loop.claim"(i64 %".1") noinline optsize
{
entry:
  %".5" = alloca i64
  %$1 = mul i64 8, 0
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %".3" = load atomic i64, i64* %$3 seq_cst, align 8
  %$4 = and i64 %".3", 4294967295
  %$5 = mul i64 8, 101
  %$6 = add i64 %".1", %$5
  %$7 = inttoptr i64 %$6 to i64*
  %".4" = load atomic i64, i64* %$7 seq_cst, align 8
  %$8 = icmp sge i64 %$4, %".4"
  br i1 %$8, label %"yes", label %"no"
end:
  %$40 = load i64, i64* %".5"
  ret i64 %$40
yes:
  store i64 0, i64* %".5"
  br label %"end"
no:
  br label %"end.1"
end.1:
  %$9 = mul i64 8, 96
  %$10 = add i64 %".1", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %".6" = load atomic i64, i64* %$11 seq_cst, align 8
  %$12 = mul i64 8, 97
  %$13 = add i64 %".1", %$12
  %$14 = inttoptr i64 %$13 to i64*
  %".7" = load atomic i64, i64* %$14 seq_cst, align 8
  %$15 = mul i64 8, 98
  %$16 = add i64 %".1", %$15
  %$17 = inttoptr i64 %$16 to i64*
  %".8" = load atomic i64, i64* %$17 seq_cst, align 8
  %$18 = mul i64 8, 99
  %$19 = add i64 %".1", %$18
  %$20 = inttoptr i64 %$19 to i64*
  %".9" = load atomic i64, i64* %$20 seq_cst, align 8
  %$21 = mul i64 8, 100
  %$22 = add i64 %".1", %$21
  %$23 = inttoptr i64 %$22 to i64*
  %".10" = load atomic i64, i64* %$23 seq_cst, align 8
  %$24 = add i64 %".3", 1
  %$25 = mul i64 8, 0
  %$26 = add i64 %".1", %$25
  %$27 = inttoptr i64 %$26 to i64*
  %".11" = cmpxchg i64* %$27, i64 %".3", i64 %$24 seq_cst seq_cst
  %".12" = extractvalue {i64, i1} %".11", 1
  %$28 = zext i1 %".12" to i64
  %$29 = icmp ne i64 %$28, 0
  br i1 %$29, label %"yes.1", label %"no.1"
yes.1:
  %$30 = mul i64 8, 124
  %$31 = add i64 %".1", %$30
  %$32 = inttoptr i64 %$31 to i64*
  %".13" = load atomic i64, i64* %$32 seq_cst, align 8
  %$33 = mul i64 8, 125
  %$34 = add i64 %".1", %$33
  %$35 = inttoptr i64 %$34 to i64*
  %".14" = load atomic i64, i64* %$35 seq_cst, align 8
  %$36 = icmp ne i64 %".13", %".14"
  br i1 %$36, label %"yes.2", label %"no.2"
no.1:
  br label %"end.2"
end.2:
  store i64 1, i64* %".5"
  br label %"end"
yes.2:
  call void @"loop.run_block"(i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %$4)
  br label %"end.3"
no.2:
  br label %"end.3"
end.3:
  %$37 = mul i64 8, 16
  %$38 = add i64 %".1", %$37
  %$39 = inttoptr i64 %$38 to i64*
  %".15" = atomicrmw add i64* %$39, i64 1 seq_cst
  br label %"end.2"
}

define internal void @"loop.park"(i64 %".1", i64 %".2") alwaysinline optsize
{
entry:
  %$1 = mul i64 8, 128
  %$2 = add i64 %".1", %$1
  %$3 = mul i64 8, 112
  %$4 = add i64 %".1", %$3
  %$5 = inttoptr i64 %$4 to i64*
  %$6 = load i64, i64* %$5
  %$7 = inttoptr i64 %$6 to i32 (i64, i64, i64)*
  %$8 = call i32 %$7(i64 %$2, i64 0, i64 0)
  %$9 = sext i32 %$8 to i64
  %$10 = mul i64 8, 32
  %$11 = add i64 %".1", %$10
  %$12 = inttoptr i64 %$11 to i64*
  %".4" = atomicrmw add i64* %$12, i64 1 seq_cst
  br label %"head"
end:
  ret void
head:
  %$13 = mul i64 8, 0
  %$14 = add i64 %".1", %$13
  %$15 = inttoptr i64 %$14 to i64*
  %".5" = load atomic i64, i64* %$15 seq_cst, align 8
  %$16 = icmp eq i64 %".5", %".2"
  br i1 %$16, label %"rest", label %"end.1"
body:
  %$21 = mul i64 8, 114
  %$22 = add i64 %".1", %$21
  %$23 = inttoptr i64 %$22 to i64*
  %$24 = load i64, i64* %$23
  %$25 = mul i64 8, 144
  %$26 = add i64 %".1", %$25
  %$27 = inttoptr i64 %$24 to i32 (i64, i64, i64)*
  %$28 = call i32 %$27(i64 %$26, i64 %$2, i64 0)
  %$29 = sext i32 %$28 to i64
  br label %"head"
end.1:
  %$30 = mul i64 8, 32
  %$31 = add i64 %".1", %$30
  %$32 = inttoptr i64 %$31 to i64*
  %".7" = atomicrmw add i64* %$32, i64 -1 seq_cst
  %$33 = mul i64 8, 113
  %$34 = add i64 %".1", %$33
  %$35 = inttoptr i64 %$34 to i64*
  %$36 = load i64, i64* %$35
  %$37 = inttoptr i64 %$36 to i32 (i64, i64, i64)*
  %$38 = call i32 %$37(i64 %$2, i64 0, i64 0)
  %$39 = sext i32 %$38 to i64
  br label %"end"
rest:
  %$17 = mul i64 8, 48
  %$18 = add i64 %".1", %$17
  %$19 = inttoptr i64 %$18 to i64*
  %".6" = load atomic i64, i64* %$19 seq_cst, align 8
  %$20 = icmp eq i64 %".6", 0
  br i1 %$20, label %"body", label %"end.1"
}

define internal void @"loop.wake"(i64 %".1") noinline optsize
{
entry:
  %".6" = alloca i64
  %"wanted" = alloca i64
  %$1 = mul i64 8, 0
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %".3" = load atomic i64, i64* %$3 seq_cst, align 8
  %$4 = mul i64 8, 101
  %$5 = add i64 %".1", %$4
  %$6 = inttoptr i64 %$5 to i64*
  %".4" = load atomic i64, i64* %$6 seq_cst, align 8
  %$7 = and i64 %".3", 4294967295
  %$8 = sub i64 %".4", %$7
  store i64 %$8, i64* %"wanted"
  %$9 = load i64, i64* %"wanted"
  %$10 = icmp sgt i64 %$9, 2
  br i1 %$10, label %"yes", label %"no"
end:
  ret void
yes:
  store i64 2, i64* %"wanted"
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$11 = load i64, i64* %"wanted"
  %$12 = icmp sgt i64 %$11, 0
  br i1 %$12, label %"rest", label %"no.1"
yes.1:
  %$17 = mul i64 8, 128
  %$18 = add i64 %".1", %$17
  %$19 = mul i64 8, 112
  %$20 = add i64 %".1", %$19
  %$21 = inttoptr i64 %$20 to i64*
  %$22 = load i64, i64* %$21
  %$23 = inttoptr i64 %$22 to i32 (i64, i64, i64)*
  %$24 = call i32 %$23(i64 %$18, i64 0, i64 0)
  %$25 = sext i32 %$24 to i64
  %$26 = load i64, i64* %"wanted"
  store i64 0, i64* %".6"
  br label %"head"
no.1:
  br label %"end.2"
end.2:
  br label %"end"
rest:
  %$13 = mul i64 8, 32
  %$14 = add i64 %".1", %$13
  %$15 = inttoptr i64 %$14 to i64*
  %".5" = load atomic i64, i64* %$15 seq_cst, align 8
  %$16 = icmp sgt i64 %".5", 0
  br i1 %$16, label %"yes.1", label %"no.1"
head:
  %$27 = load i64, i64* %".6"
  %$28 = icmp slt i64 %$27, %$26
  br i1 %$28, label %"body", label %"end.3"
body:
  %$29 = mul i64 8, 115
  %$30 = add i64 %".1", %$29
  %$31 = inttoptr i64 %$30 to i64*
  %$32 = load i64, i64* %$31
  %$33 = mul i64 8, 144
  %$34 = add i64 %".1", %$33
  %$35 = inttoptr i64 %$32 to i32 (i64, i64, i64)*
  %$36 = call i32 %$35(i64 %$34, i64 0, i64 0)
  %$37 = sext i32 %$36 to i64
  %$38 = add nsw i64 %$27, 1
  store i64 %$38, i64* %".6"
  br label %"head"
end.3:
  %$39 = mul i64 8, 113
  %$40 = add i64 %".1", %$39
  %$41 = inttoptr i64 %$40 to i64*
  %$42 = load i64, i64* %$41
  %$43 = inttoptr i64 %$42 to i32 (i64, i64, i64)*
  %$44 = call i32 %$43(i64 %$18, i64 0, i64 0)
  %$45 = sext i32 %$44 to i64
  br label %"end.2"
}

define internal void @"loop.keep_clear"(i64 %".1") alwaysinline optsize
{
entry:
  %".4" = alloca i64
  %"k" = alloca i64
  %".3" = alloca i64
  %$1 = mul i64 8, 120
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  %$5 = inttoptr i64 %$4 to i32 (i64, i64, i64)*
  %$6 = call i32 %$5(i64 0, i64 0, i64 0)
  %$7 = sext i32 %$6 to i64
  %$8 = mul i64 8, 122
  %$9 = add i64 %".1", %$8
  %$10 = inttoptr i64 %$9 to i64*
  %$11 = load i64, i64* %$10
  %$12 = icmp ne i64 %$7, %$11
  br i1 %$12, label %"rest", label %"no"
end:
  ret void
yes:
  %$17 = mul i64 8, 122
  %$18 = add i64 %".1", %$17
  %$19 = inttoptr i64 %$18 to i64*
  store i64 %$7, i64* %$19
  store i64 0, i64* %".3"
  br label %"head"
no:
  br label %"end.1"
end.1:
  br label %"end"
rest:
  %$13 = mul i64 16, 64
  %$14 = icmp sle i64 0, %$7
  %$15 = icmp slt i64 %$7, %$13
  %$16 = and i1 %$14, %$15
  br i1 %$16, label %"yes", label %"no"
head:
  %$20 = load i64, i64* %".3"
  %$21 = icmp slt i64 %$20, 16
  br i1 %$21, label %"body", label %"end.2"
body:
  store i64 %$20, i64* %"k"
  %$22 = load i64, i64* %"k"
  %$23 = add i64 160, %$22
  %$24 = mul i64 8, %$23
  %$25 = add i64 %".1", %$24
  %$26 = inttoptr i64 %$25 to i64*
  %$27 = load i64, i64* %$26
  %$28 = load i64, i64* %"k"
  %$29 = add i64 176, %$28
  %$30 = mul i64 8, %$29
  %$31 = add i64 %".1", %$30
  %$32 = inttoptr i64 %$31 to i64*
  store i64 %$27, i64* %$32
  %$33 = add nsw i64 %$20, 1
  store i64 %$33, i64* %".3"
  br label %"head"
end.2:
  %$34 = ashr i64 %$7, 6
  %$35 = add i64 160, %$34
  %$36 = mul i64 8, %$35
  %$37 = add i64 %".1", %$36
  %$38 = inttoptr i64 %$37 to i64*
  %$39 = load i64, i64* %$38
  %$40 = and i64 %$7, 63
  %$41 = shl i64 1, %$40
  %$42 = xor i64 %$41, -1
  %$43 = and i64 %$39, %$42
  %$44 = ashr i64 %$7, 6
  %$45 = add i64 176, %$44
  %$46 = mul i64 8, %$45
  %$47 = add i64 %".1", %$46
  %$48 = inttoptr i64 %$47 to i64*
  store i64 %$43, i64* %$48
  %$49 = mul i64 8, 65
  %$50 = add i64 %".1", %$49
  %$51 = inttoptr i64 %$50 to i64*
  %$52 = load i64, i64* %$51
  %$53 = icmp slt i64 %$52, 15
  %$54 = select i1 %$53, i64 %$52, i64 15
  store i64 0, i64* %".4"
  br label %"head.1"
head.1:
  %$55 = load i64, i64* %".4"
  %$56 = icmp slt i64 %$55, %$54
  br i1 %$56, label %"body.1", label %"end.3"
body.1:
  store i64 %$55, i64* %"k"
  %$57 = load i64, i64* %"k"
  %$58 = add i64 192, %$57
  %$59 = mul i64 8, %$58
  %$60 = add i64 %".1", %$59
  %$61 = inttoptr i64 %$60 to i64*
  %".5" = load atomic i64, i64* %$61 seq_cst, align 8
  %$62 = icmp ne i64 %".5", 0
  br i1 %$62, label %"yes.1", label %"no.1"
end.3:
  br label %"end.1"
yes.1:
  %$63 = mul i64 8, 121
  %$64 = add i64 %".1", %$63
  %$65 = inttoptr i64 %$64 to i64*
  %$66 = load i64, i64* %$65
  %$67 = mul i64 16, 8
  %$68 = mul i64 8, 176
  %$69 = add i64 %".1", %$68
  %$70 = inttoptr i64 %$66 to i32 (i64, i64, i64)*
  %$71 = call i32 %$70(i64 %".5", i64 %$67, i64 %$69)
  %$72 = sext i32 %$71 to i64
  br label %"end.4"
no.1:
  br label %"end.4"
end.4:
  %$73 = add nsw i64 %$55, 1
  store i64 %$73, i64* %".4"
  br label %"head.1"
}

define internal void @"loop.share"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7") alwaysinline optsize
{
entry:
  %"spins" = alloca i64
  %$1 = mul i64 8, 0
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %".9" = load atomic i64, i64* %$3 seq_cst, align 8
  %$4 = ashr i64 %".9", 32
  %$5 = add i64 %$4, 1
  %$6 = shl i64 %$5, 32
  %$7 = or i64 %$6, 4294967295
  %$8 = mul i64 8, 0
  %$9 = add i64 %".1", %$8
  %$10 = inttoptr i64 %$9 to i64*
  store atomic i64 %$7, i64* %$10 seq_cst, align 8
  %$11 = mul i64 8, 96
  %$12 = add i64 %".1", %$11
  %$13 = inttoptr i64 %$12 to i64*
  store atomic i64 %".2", i64* %$13 seq_cst, align 8
  %$14 = mul i64 8, 97
  %$15 = add i64 %".1", %$14
  %$16 = inttoptr i64 %$15 to i64*
  store atomic i64 %".3", i64* %$16 seq_cst, align 8
  %$17 = mul i64 8, 98
  %$18 = add i64 %".1", %$17
  %$19 = inttoptr i64 %$18 to i64*
  store atomic i64 %".4", i64* %$19 seq_cst, align 8
  %$20 = mul i64 8, 99
  %$21 = add i64 %".1", %$20
  %$22 = inttoptr i64 %$21 to i64*
  store atomic i64 %".5", i64* %$22 seq_cst, align 8
  %$23 = mul i64 8, 100
  %$24 = add i64 %".1", %$23
  %$25 = inttoptr i64 %$24 to i64*
  store atomic i64 %".6", i64* %$25 seq_cst, align 8
  %$26 = mul i64 8, 101
  %$27 = add i64 %".1", %$26
  %$28 = inttoptr i64 %$27 to i64*
  store atomic i64 %".7", i64* %$28 seq_cst, align 8
  %$29 = mul i64 8, 16
  %$30 = add i64 %".1", %$29
  %$31 = inttoptr i64 %$30 to i64*
  store atomic i64 0, i64* %$31 seq_cst, align 8
  %$32 = mul i64 8, 120
  %$33 = add i64 %".1", %$32
  %$34 = inttoptr i64 %$33 to i64*
  %$35 = load i64, i64* %$34
  %$36 = icmp ne i64 %$35, 0
  br i1 %$36, label %"yes", label %"no"
end:
  ret void
yes:
  call void @"loop.keep_clear"(i64 %".1")
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$37 = shl i64 %$5, 32
  %$38 = mul i64 8, 0
  %$39 = add i64 %".1", %$38
  %$40 = inttoptr i64 %$39 to i64*
  store atomic i64 %$37, i64* %$40 seq_cst, align 8
  call void @"loop.wake"(i64 %".1")
  br label %"head"
head:
  %$41 = call i64 @"loop.claim"(i64 %".1")
  %$42 = icmp ne i64 %$41, 0
  br i1 %$42, label %"body", label %"end.2"
body:
  br label %"head"
end.2:
  store i64 0, i64* %"spins"
  br label %"head.1"
head.1:
  %$43 = mul i64 8, 16
  %$44 = add i64 %".1", %$43
  %$45 = inttoptr i64 %$44 to i64*
  %".19" = load atomic i64, i64* %$45 seq_cst, align 8
  %$46 = icmp slt i64 %".19", %".7"
  br i1 %$46, label %"body.1", label %"end.3"
body.1:
  call void @"llvm.x86.sse2.pause"()
  %$47 = load i64, i64* %"spins"
  %$48 = add i64 %$47, 1
  store i64 %$48, i64* %"spins"
  %$49 = load i64, i64* %"spins"
  %$50 = icmp sgt i64 %$49, 2000
  br i1 %$50, label %"yes.1", label %"no.1"
end.3:
  br label %"end"
yes.1:
  %$51 = mul i64 8, 116
  %$52 = add i64 %".1", %$51
  %$53 = inttoptr i64 %$52 to i64*
  %$54 = load i64, i64* %$53
  %$55 = inttoptr i64 %$54 to i32 (i64, i64, i64)*
  %$56 = call i32 %$55(i64 0, i64 0, i64 0)
  %$57 = sext i32 %$56 to i64
  br label %"end.4"
no.1:
  br label %"end.4"
end.4:
  br label %"head.1"
}

define internal void @"loop.launch"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8") noinline optsize
{
entry:
  %".10" = alloca i64
  %"blocks" = alloca i64
  %"block_size" = alloca i64
  store i64 %".8", i64* %"block_size"
  %$1 = load i64, i64* %"block_size"
  %$2 = icmp slt i64 %$1, 1
  br i1 %$2, label %"yes", label %"no"
end:
  ret void
yes:
  store i64 %".7", i64* %"block_size"
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  store i64 0, i64* %"blocks"
  %$3 = icmp sgt i64 %".7", 0
  br i1 %$3, label %"yes.1", label %"no.1"
yes.1:
  %$4 = sub i64 %".7", 1
  %$5 = load i64, i64* %"block_size"
  %$6 = srem i64 %$4, %$5
  %$7 = xor i64 %$6, %$5
  %$8 = icmp slt i64 %$7, 0
  %$9 = icmp ne i64 %$6, 0
  %$10 = and i1 %$8, %$9
  %$11 = sdiv i64 %$4, %$5
  %$12 = zext i1 %$10 to i64
  %$13 = sub i64 %$11, %$12
  %$14 = add i64 %$13, 1
  store i64 %$14, i64* %"blocks"
  br label %"end.2"
no.1:
  br label %"end.2"
end.2:
  %$15 = icmp ne i64 %".3", 0
  br i1 %$15, label %"rest", label %"no.2"
yes.2:
  %$20 = load i64, i64* %"block_size"
  %$21 = load i64, i64* %"blocks"
  call void @"loop.share"(i64 %".1", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %$20, i64 %$21)
  br label %"end.3"
no.2:
  %$22 = load i64, i64* %"blocks"
  store i64 0, i64* %".10"
  br label %"head"
end.3:
  br label %"end"
rest:
  %$16 = load i64, i64* %"blocks"
  %$17 = icmp slt i64 1, %$16
  %$18 = icmp slt i64 %$16, 2147483647
  %$19 = and i1 %$17, %$18
  br i1 %$19, label %"yes.2", label %"no.2"
head:
  %$23 = load i64, i64* %".10"
  %$24 = icmp slt i64 %$23, %$22
  br i1 %$24, label %"body", label %"end.4"
body:
  %$25 = mul i64 8, 124
  %$26 = add i64 %".1", %$25
  %$27 = inttoptr i64 %$26 to i64*
  %".11" = load atomic i64, i64* %$27 seq_cst, align 8
  %$28 = icmp ne i64 %".11", %".2"
  br i1 %$28, label %"yes.3", label %"no.3"
end.4:
  br label %"end.3"
yes.3:
  %$29 = load i64, i64* %"block_size"
  call void @"loop.run_block"(i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %$29, i64 %$23)
  br label %"end.5"
no.3:
  br label %"end.5"
end.5:
  %$30 = add nsw i64 %$23, 1
  store i64 %$30, i64* %".10"
  br label %"head"
}

define internal void @"loop.lock_blas"(i64 %".1") noinline optsize
{
entry:
  br label %"head"
end:
  ret void
head:
  %$1 = mul i64 8, 0
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %".3" = cmpxchg i64* %$3, i64 0, i64 1 seq_cst seq_cst
  %".4" = extractvalue {i64, i1} %".3", 1
  %$4 = zext i1 %".4" to i64
  %$5 = icmp ne i64 %$4, 0
  br i1 %$5, label %"end.1", label %"body"
body:
  call void @"llvm.x86.sse2.pause"()
  br label %"head"
end.1:
  br label %"end"
}

define internal void @"loop.enter_blas"(i64 %".1") noinline optsize
{
entry:
  %$1 = mul i64 8, 119
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  call void @"loop.lock_blas"(i64 %$4)
  %$5 = mul i64 8, 1
  %$6 = add i64 %$4, %$5
  %$7 = inttoptr i64 %$6 to i64*
  %".3" = atomicrmw add i64* %$7, i64 1 seq_cst
  %$8 = icmp eq i64 %".3", 0
  br i1 %$8, label %"rest", label %"no"
end:
  ret void
yes:
  %$14 = mul i64 8, 117
  %$15 = add i64 %".1", %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = inttoptr i64 %$17 to i32 (i64, i64, i64)*
  %$19 = call i32 %$18(i64 0, i64 0, i64 0)
  %$20 = sext i32 %$19 to i64
  %$21 = mul i64 8, 2
  %$22 = add i64 %$4, %$21
  %$23 = inttoptr i64 %$22 to i64*
  store atomic i64 %$20, i64* %$23 seq_cst, align 8
  %$24 = mul i64 8, 118
  %$25 = add i64 %".1", %$24
  %$26 = inttoptr i64 %$25 to i64*
  %$27 = load i64, i64* %$26
  %$28 = inttoptr i64 %$27 to i32 (i64, i64, i64)*
  %$29 = call i32 %$28(i64 1, i64 0, i64 0)
  %$30 = sext i32 %$29 to i64
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$31 = mul i64 8, 0
  %$32 = add i64 %$4, %$31
  %$33 = inttoptr i64 %$32 to i64*
  store atomic i64 0, i64* %$33 seq_cst, align 8
  br label %"end"
rest:
  %$9 = mul i64 8, 118
  %$10 = add i64 %".1", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = icmp ne i64 %$12, 0
  br i1 %$13, label %"yes", label %"no"
}

define internal void @"loop.leave_blas"(i64 %".1") noinline optsize
{
entry:
  %$1 = mul i64 8, 119
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  call void @"loop.lock_blas"(i64 %$4)
  %$5 = mul i64 8, 1
  %$6 = add i64 %$4, %$5
  %$7 = inttoptr i64 %$6 to i64*
  %".3" = atomicrmw add i64* %$7, i64 -1 seq_cst
  %$8 = icmp eq i64 %".3", 1
  br i1 %$8, label %"rest", label %"no"
end:
  ret void
yes:
  %$14 = mul i64 8, 118
  %$15 = add i64 %".1", %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = mul i64 8, 2
  %$19 = add i64 %$4, %$18
  %$20 = inttoptr i64 %$19 to i64*
  %".4" = load atomic i64, i64* %$20 seq_cst, align 8
  %$21 = inttoptr i64 %$17 to i32 (i64, i64, i64)*
  %$22 = call i32 %$21(i64 %".4", i64 0, i64 0)
  %$23 = sext i32 %$22 to i64
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$24 = mul i64 8, 0
  %$25 = add i64 %$4, %$24
  %$26 = inttoptr i64 %$25 to i64*
  store atomic i64 0, i64* %$26 seq_cst, align 8
  br label %"end"
rest:
  %$9 = mul i64 8, 118
  %$10 = add i64 %".1", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = icmp ne i64 %$12, 0
  br i1 %$13, label %"yes", label %"no"
}

define internal void @"loop.multiply"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6") alwaysinline optsize
{
entry:
  %"block_size" = alloca i64
  %"band" = alloca i64
  %"work" = alloca i64
  %"n" = alloca i64
  %$1 = mul i64 8, 13
  %$2 = add i64 %".6", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  store i64 %$4, i64* %"n"
  %$5 = mul i64 8, 0
  %$6 = add i64 %".6", %$5
  %$7 = inttoptr i64 %$6 to i64*
  %$8 = load i64, i64* %$7
  %$9 = mul i64 8, 1
  %$10 = add i64 %".6", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = mul i64 %$8, %$12
  %$14 = mul i64 8, 2
  %$15 = add i64 %".6", %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = mul i64 %$13, %$17
  store i64 %$18, i64* %"work"
  store i64 1, i64* %"band"
  %$19 = load i64, i64* %"n"
  %$20 = icmp eq i64 %$19, 1
  br i1 %$20, label %"yes", label %"no"
end:
  ret void
yes:
  %$21 = mul i64 8, 0
  %$22 = add i64 %".6", %$21
  %$23 = inttoptr i64 %$22 to i64*
  %$24 = load i64, i64* %$23
  %$25 = mul i64 8, 1
  %$26 = add i64 %".6", %$25
  %$27 = inttoptr i64 %$26 to i64*
  %$28 = load i64, i64* %$27
  %$29 = icmp sgt i64 %$24, %$28
  %$30 = select i1 %$29, i64 %$24, i64 %$28
  store i64 %$30, i64* %"n"
  %$31 = mul i64 8, 0
  %$32 = add i64 %".6", %$31
  %$33 = inttoptr i64 %$32 to i64*
  %$34 = load i64, i64* %$33
  %$35 = mul i64 8, 1
  %$36 = add i64 %".6", %$35
  %$37 = inttoptr i64 %$36 to i64*
  %$38 = load i64, i64* %$37
  %$39 = icmp slt i64 %$34, %$38
  %$40 = select i1 %$39, i64 %$34, i64 %$38
  %$41 = mul i64 8, 2
  %$42 = add i64 %".6", %$41
  %$43 = inttoptr i64 %$42 to i64*
  %$44 = load i64, i64* %$43
  %$45 = mul i64 %$40, %$44
  store i64 %$45, i64* %"work"
  %$46 = load i64, i64* %"n"
  %$47 = sub i64 %$46, 1
  %$48 = mul i64 8, 123
  %$49 = add i64 %".1", %$48
  %$50 = inttoptr i64 %$49 to i64*
  %$51 = load i64, i64* %$50
  %$52 = srem i64 %$47, %$51
  %$53 = xor i64 %$52, %$51
  %$54 = icmp slt i64 %$53, 0
  %$55 = icmp ne i64 %$52, 0
  %$56 = and i1 %$54, %$55
  %$57 = sdiv i64 %$47, %$51
  %$58 = zext i1 %$56 to i64
  %$59 = sub i64 %$57, %$58
  %$60 = add i64 %$59, 1
  %$61 = icmp sgt i64 %$60, 128
  %$62 = select i1 %$61, i64 %$60, i64 128
  %$63 = icmp slt i64 %$62, 512
  %$64 = select i1 %$63, i64 %$62, i64 512
  store i64 %$64, i64* %"band"
  %$65 = load i64, i64* %"n"
  %$66 = icmp sle i64 %$65, 255
  br i1 %$66, label %"yes.1", label %"no.1"
no:
  br label %"end.1"
end.1:
  %$79 = load i64, i64* %"band"
  %$80 = load i64, i64* %"work"
  %$81 = icmp sgt i64 %$80, 1
  %$82 = select i1 %$81, i64 %$80, i64 1
  %$83 = srem i64 131072, %$82
  %$84 = xor i64 %$83, %$82
  %$85 = icmp slt i64 %$84, 0
  %$86 = icmp ne i64 %$83, 0
  %$87 = and i1 %$85, %$86
  %$88 = sdiv i64 131072, %$82
  %$89 = zext i1 %$87 to i64
  %$90 = sub i64 %$88, %$89
  %$91 = add i64 %$90, 1
  %$92 = icmp sgt i64 %$79, %$91
  %$93 = select i1 %$92, i64 %$79, i64 %$91
  %$94 = load i64, i64* %"n"
  %$95 = sub i64 %$94, 1
  %$96 = srem i64 %$95, 32
  %$97 = xor i64 %$96, 32
  %$98 = icmp slt i64 %$97, 0
  %$99 = icmp ne i64 %$96, 0
  %$100 = and i1 %$98, %$99
  %$101 = sdiv i64 %$95, 32
  %$102 = zext i1 %$100 to i64
  %$103 = sub i64 %$101, %$102
  %$104 = add i64 %$103, 1
  %$105 = icmp sgt i64 %$93, %$104
  %$106 = select i1 %$105, i64 %$93, i64 %$104
  store i64 %$106, i64* %"block_size"
  %$107 = load i64, i64* %"n"
  %$108 = sub i64 %$107, 1
  %$109 = load i64, i64* %"n"
  %$110 = sub i64 %$109, 1
  %$111 = load i64, i64* %"block_size"
  %$112 = srem i64 %$110, %$111
  %$113 = xor i64 %$112, %$111
  %$114 = icmp slt i64 %$113, 0
  %$115 = icmp ne i64 %$112, 0
  %$116 = and i1 %$114, %$115
  %$117 = sdiv i64 %$110, %$111
  %$118 = zext i1 %$116 to i64
  %$119 = sub i64 %$117, %$118
  %$120 = add i64 %$119, 1
  %$121 = srem i64 %$108, %$120
  %$122 = xor i64 %$121, %$120
  %$123 = icmp slt i64 %$122, 0
  %$124 = icmp ne i64 %$121, 0
  %$125 = and i1 %$123, %$124
  %$126 = sdiv i64 %$108, %$120
  %$127 = zext i1 %$125 to i64
  %$128 = sub i64 %$126, %$127
  %$129 = add i64 %$128, 1
  %$130 = load i64, i64* %"band"
  %$131 = icmp slt i64 %$130, 16
  %$132 = select i1 %$131, i64 %$130, i64 16
  %$133 = add i64 %$129, %$132
  %$134 = sub i64 %$133, 1
  %$135 = load i64, i64* %"band"
  %$136 = icmp slt i64 %$135, 16
  %$137 = select i1 %$136, i64 %$135, i64 16
  %$138 = srem i64 %$134, %$137
  %$139 = xor i64 %$138, %$137
  %$140 = icmp slt i64 %$139, 0
  %$141 = icmp ne i64 %$138, 0
  %$142 = and i1 %$140, %$141
  %$143 = sdiv i64 %$134, %$137
  %$144 = zext i1 %$142 to i64
  %$145 = sub i64 %$143, %$144
  %$146 = load i64, i64* %"band"
  %$147 = icmp slt i64 %$146, 16
  %$148 = select i1 %$147, i64 %$146, i64 16
  %$149 = mul i64 %$145, %$148
  store i64 %$149, i64* %"block_size"
  call void @"loop.enter_blas"(i64 %".1")
  %$150 = load i64, i64* %"n"
  %$151 = load i64, i64* %"block_size"
  call void @"loop.launch"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %$150, i64 %$151)
  call void @"loop.leave_blas"(i64 %".1")
  br label %"end"
yes.1:
  %$67 = load i64, i64* %"n"
  %$68 = add i64 %$67, 1
  %$69 = srem i64 %$68, 2
  %$70 = xor i64 %$69, 2
  %$71 = icmp slt i64 %$70, 0
  %$72 = icmp ne i64 %$69, 0
  %$73 = and i1 %$71, %$72
  %$74 = sdiv i64 %$68, 2
  %$75 = zext i1 %$73 to i64
  %$76 = sub i64 %$74, %$75
  %$77 = icmp sgt i64 16, %$76
  %$78 = select i1 %$77, i64 16, i64 %$76
  store i64 %$78, i64* %"band"
  br label %"end.2"
no.1:
  br label %"end.2"
end.2:
  br label %"end.1"
}

define internal void @"loop.relocate"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6") alwaysinline optsize
{
entry:
  %".8" = alloca i64
  store i64 0, i64* %".8"
  br label %"head"
end:
  ret void
head:
  %$1 = load i64, i64* %".8"
  %$2 = icmp slt i64 %$1, %".6"
  br i1 %$2, label %"body", label %"end.1"
body:
  %$3 = mul i64 8, %$1
  %$4 = add i64 %".4", %$3
  %$5 = inttoptr i64 %$4 to i64*
  %$6 = load i64, i64* %$5
  %$7 = mul i64 8, %$6
  %$8 = add i64 %".2", %$7
  %$9 = inttoptr i64 %$8 to i64*
  %$10 = load i64, i64* %$9
  %$11 = mul i64 8, %$1
  %$12 = add i64 %".5", %$11
  %$13 = inttoptr i64 %$12 to i64*
  %$14 = load i64, i64* %$13
  %$15 = add i64 %$10, %$14
  %$16 = mul i64 8, %$1
  %$17 = add i64 %".3", %$16
  %$18 = inttoptr i64 %$17 to i64*
  %$19 = load i64, i64* %$18
  %$20 = mul i64 8, %$19
  %$21 = add i64 %".1", %$20
  %$22 = inttoptr i64 %$21 to i64*
  store i64 %$15, i64* %$22
  %$23 = add nsw i64 %$1, 1
  store i64 %$23, i64* %".8"
  br label %"head"
end.1:
  br label %"end"
}

define internal i64 @"loop.address_of"(i64 %".1", i64 %".2") noinline optsize
{
entry:
  %".4" = alloca i64
  %$1 = icmp slt i64 %".2", 0
  br i1 %$1, label %"yes", label %"no"
end:
  %$15 = load i64, i64* %".4"
  ret i64 %$15
yes:
  %$2 = sub i64 0, %".2"
  %$3 = mul i64 8, %$2
  %$4 = add i64 %".1", %$3
  %$5 = inttoptr i64 %$4 to i64*
  %$6 = load i64, i64* %$5
  store i64 %$6, i64* %".4"
  br label %"end"
no:
  br label %"end.1"
end.1:
  %$7 = mul i64 8, 2
  %$8 = add i64 %".1", %$7
  %$9 = inttoptr i64 %$8 to i64*
  %$10 = load i64, i64* %$9
  %$11 = mul i64 8, %".2"
  %$12 = add i64 %$10, %$11
  %$13 = inttoptr i64 %$12 to i64*
  %$14 = load i64, i64* %$13
  store i64 %$14, i64* %".4"
  br label %"end"
}

define internal void @"loop.copy"(i64 %".1", i64 %".2", i64 %".3") noinline optsize
{
entry:
  %".5" = alloca i64
  %$1 = add i64 %".2", %".3"
  store i64 %".2", i64* %".5"
  br label %"head"
end:
  ret void
head:
  %$2 = load i64, i64* %".5"
  %$3 = icmp slt i64 %$2, %$1
  br i1 %$3, label %"body", label %"end.1"
body:
  %$4 = mul i64 8, 4
  %$5 = add i64 %".1", %$4
  %$6 = inttoptr i64 %$5 to i64*
  %$7 = load i64, i64* %$6
  %$8 = mul i64 %$2, 24
  %$9 = add i64 %$7, %$8
  %$10 = mul i64 8, 7
  %$11 = add i64 %".1", %$10
  %$12 = inttoptr i64 %$11 to i64*
  %$13 = load i64, i64* %$12
  %$14 = mul i64 8, 0
  %$15 = add i64 %$9, %$14
  %$16 = inttoptr i64 %$15 to i64*
  %$17 = load i64, i64* %$16
  %$18 = call i64 @"loop.address_of"(i64 %".1", i64 %$17)
  %$19 = mul i64 8, 1
  %$20 = add i64 %$9, %$19
  %$21 = inttoptr i64 %$20 to i64*
  %$22 = load i64, i64* %$21
  %$23 = call i64 @"loop.address_of"(i64 %".1", i64 %$22)
  %$24 = mul i64 8, 2
  %$25 = add i64 %$9, %$24
  %$26 = inttoptr i64 %$25 to i64*
  %$27 = load i64, i64* %$26
  %$28 = inttoptr i64 %$13 to i32 (i64, i64, i64)*
  %$29 = call i32 %$28(i64 %$18, i64 %$23, i64 %$27)
  %$30 = sext i32 %$29 to i64
  %$31 = add nsw i64 %$2, 1
  store i64 %$31, i64* %".5"
  br label %"head"
end.1:
  br label %"end"
}

define internal void @"loop.repeat"(i64 %".1", i64 %".2", i64 %".3", i64 %".4") alwaysinline optsize
{
entry:
  %".9" = alloca i64
  %"turn" = alloca i64
  %"count" = alloca i64
  %"k" = alloca i64
  %".6" = alloca i64
  %$1 = mul i64 8, 2
  %$2 = add i64 %".4", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  %$5 = mul i64 8, 2
  %$6 = add i64 %$4, %$5
  %$7 = inttoptr i64 %$6 to i64*
  %$8 = load i64, i64* %$7
  %$9 = mul i64 8, 3
  %$10 = add i64 %$4, %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = mul i64 8, 4
  %$14 = add i64 %".4", %$13
  %$15 = inttoptr i64 %$14 to i64*
  %$16 = load i64, i64* %$15
  store i64 0, i64* %".6"
  br label %"head"
end:
  ret void
head:
  %$17 = load i64, i64* %".6"
  %$18 = icmp slt i64 %$17, %$16
  br i1 %$18, label %"body", label %"end.1"
body:
  store i64 %$17, i64* %"k"
  %$19 = load i64, i64* %"k"
  %$20 = add i64 9, %$19
  %$21 = mul i64 8, %$20
  %$22 = add i64 %$4, %$21
  %$23 = inttoptr i64 %$22 to i64*
  %$24 = load i64, i64* %$23
  %$25 = load i64, i64* %"k"
  %$26 = mul i64 8, %$25
  %$27 = add i64 %$8, %$26
  %$28 = inttoptr i64 %$27 to i64*
  store i64 %$24, i64* %$28
  %$29 = add nsw i64 %$17, 1
  store i64 %$29, i64* %".6"
  br label %"head"
end.1:
  %$30 = mul i64 8, 5
  %$31 = add i64 %$4, %$30
  %$32 = inttoptr i64 %$31 to i64*
  %$33 = load i64, i64* %$32
  call void @"loop.copy"(i64 %$4, i64 0, i64 %$33)
  %$34 = mul i64 8, 1
  %$35 = add i64 %$4, %$34
  %$36 = inttoptr i64 %$35 to i64*
  %$37 = load i64, i64* %$36
  store i64 %$37, i64* %"count"
  %$38 = icmp ne i64 %".3", 0
  br i1 %$38, label %"yes", label %"no"
yes:
  %$39 = load i64, i64* %"count"
  %$40 = sub i64 -1, %$39
  store i64 %$40, i64* %"count"
  br label %"end.2"
no:
  br label %"end.2"
end.2:
  store i64 0, i64* %"turn"
  br label %"head.1"
head.1:
  %$41 = load i64, i64* %"turn"
  %$42 = mul i64 8, 3
  %$43 = add i64 %".4", %$42
  %$44 = inttoptr i64 %$43 to i64*
  %$45 = load i64, i64* %$44
  %$46 = icmp slt i64 %$41, %$45
  br i1 %$46, label %"rest", label %"end.3"
body.1:
  %$51 = load i64, i64* %"turn"
  %$52 = add i64 %$51, 1
  store i64 %$52, i64* %"turn"
  %$53 = mul i64 8, 1
  %$54 = add i64 %".4", %$53
  %$55 = inttoptr i64 %$54 to i64*
  %$56 = load i64, i64* %$55
  %$57 = mul i64 8, 95
  %$58 = add i64 %".1", %$57
  %$59 = mul i64 8, 0
  %$60 = add i64 %$4, %$59
  %$61 = inttoptr i64 %$60 to i64*
  %$62 = load i64, i64* %$61
  %$63 = load i64, i64* %"count"
  %$64 = inttoptr i64 %$58 to i64*
  %$65 = inttoptr i64 %$56 to void (i64*, i64, i64)*
  call void %$65(i64* %$64, i64 %$62, i64 %$63)
  %$66 = mul i64 8, 8
  %$67 = add i64 %$4, %$66
  %$68 = inttoptr i64 %$67 to i64*
  %$69 = load i64, i64* %$68
  %$70 = mul i64 8, 0
  %$71 = add i64 %$69, %$70
  %$72 = inttoptr i64 %$71 to i64*
  %$73 = load i64, i64* %$72
  %$74 = icmp ne i64 %$73, 0
  br i1 %$74, label %"yes.1", label %"no.1"
end.3:
  br label %"end"
rest:
  %$47 = mul i64 8, 124
  %$48 = add i64 %".1", %$47
  %$49 = inttoptr i64 %$48 to i64*
  %".7" = load atomic i64, i64* %$49 seq_cst, align 8
  %$50 = icmp ne i64 %".7", %".2"
  br i1 %$50, label %"body.1", label %"end.3"
yes.1:
  %$75 = mul i64 8, 0
  %$76 = add i64 %$69, %$75
  %$77 = inttoptr i64 %$76 to i64*
  store i64 0, i64* %$77
  %$78 = mul i64 8, 5
  %$79 = add i64 %".4", %$78
  %$80 = inttoptr i64 %$79 to i64*
  %$81 = load i64, i64* %$80
  %$82 = mul i64 8, %$81
  %$83 = add i64 %$4, %$82
  %$84 = mul i64 8, 0
  %$85 = add i64 %$83, %$84
  %$86 = inttoptr i64 %$85 to i64*
  %$87 = load i64, i64* %$86
  %$88 = mul i64 8, 1
  %$89 = add i64 %$83, %$88
  %$90 = inttoptr i64 %$89 to i64*
  %$91 = load i64, i64* %$90
  %$92 = mul i64 8, 0
  %$93 = add i64 %$87, %$92
  %$94 = inttoptr i64 %$93 to i64*
  store atomic i64 %$91, i64* %$94 seq_cst, align 8
  %$95 = mul i64 8, 3
  %$96 = add i64 %".4", %$95
  %$97 = inttoptr i64 %$96 to i64*
  %$98 = load i64, i64* %$97
  store i64 %$98, i64* %"turn"
  br label %"end.4"
no.1:
  br label %"end.4"
end.4:
  %$99 = mul i64 8, 5
  %$100 = add i64 %$4, %$99
  %$101 = inttoptr i64 %$100 to i64*
  %$102 = load i64, i64* %$101
  %$103 = mul i64 8, 6
  %$104 = add i64 %$4, %$103
  %$105 = inttoptr i64 %$104 to i64*
  %$106 = load i64, i64* %$105
  call void @"loop.copy"(i64 %$4, i64 %$102, i64 %$106)
  %$107 = mul i64 8, 4
  %$108 = add i64 %".4", %$107
  %$109 = inttoptr i64 %$108 to i64*
  %$110 = load i64, i64* %$109
  store i64 0, i64* %".9"
  br label %"head.2"
head.2:
  %$111 = load i64, i64* %".9"
  %$112 = icmp slt i64 %$111, %$110
  br i1 %$112, label %"body.2", label %"end.5"
body.2:
  store i64 %$111, i64* %"k"
  %$113 = load i64, i64* %"k"
  %$114 = mul i64 8, %$113
  %$115 = add i64 %$8, %$114
  %$116 = inttoptr i64 %$115 to i64*
  %$117 = load i64, i64* %$116
  %$118 = load i64, i64* %"k"
  %$119 = mul i64 8, %$118
  %$120 = add i64 %$12, %$119
  %$121 = inttoptr i64 %$120 to i64*
  %$122 = load i64, i64* %$121
  %$123 = add i64 %$117, %$122
  %$124 = load i64, i64* %"k"
  %$125 = mul i64 8, %$124
  %$126 = add i64 %$8, %$125
  %$127 = inttoptr i64 %$126 to i64*
  store i64 %$123, i64* %$127
  %$128 = add nsw i64 %$111, 1
  store i64 %$128, i64* %".9"
  br label %"head.2"
end.5:
  br label %"head.1"
}

define internal void @"loop.run"(i64 %".1", i64 %".2", i64 %".3") alwaysinline optsize
{
entry:
  %$1 = mul i64 8, 65
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %$4 = load i64, i64* %$3
  %$5 = icmp sgt i64 %$4, 0
  br i1 %$5, label %"rest", label %"no"
end:
  ret void
yes:
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %".7" = phi  i1 [1, %"yes"], [0, %"no"]
  %$11 = zext i1 %".7" to i64
  %$12 = icmp ne i64 %$11, 0
  br i1 %$12, label %"yes.1", label %"no.1"
rest:
  %$6 = mul i64 8, 64
  %$7 = add i64 %".1", %$6
  %$8 = inttoptr i64 %$7 to i64*
  %".5" = cmpxchg i64* %$8, i64 0, i64 1 seq_cst seq_cst
  %".6" = extractvalue {i64, i1} %".5", 1
  %$9 = zext i1 %".6" to i64
  %$10 = icmp ne i64 %$9, 0
  br i1 %$10, label %"yes", label %"no"
yes.1:
  %$13 = mul i64 8, 125
  %$14 = add i64 %".1", %$13
  %$15 = inttoptr i64 %$14 to i64*
  store atomic i64 %".2", i64* %$15 seq_cst, align 8
  br label %"end.2"
no.1:
  br label %"end.2"
end.2:
  call void @"loop.steps"(i64 %".1", i64 %".2", i64 %".3", i64 %$11, i64 %".2")
  %$16 = icmp ne i64 %$11, 0
  br i1 %$16, label %"yes.2", label %"no.2"
yes.2:
  %$17 = mul i64 8, 64
  %$18 = add i64 %".1", %$17
  %$19 = inttoptr i64 %$18 to i64*
  store atomic i64 0, i64* %$19 seq_cst, align 8
  br label %"end.3"
no.2:
  br label %"end.3"
end.3:
  br label %"end"
}

define internal void @"loop.steps"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") noinline optsize
{
entry:
  %"k" = alloca i64
  store i64 0, i64* %"k"
  br label %"head"
end:
  ret void
head:
  %$1 = load i64, i64* %"k"
  %$2 = icmp slt i64 %$1, %".3"
  br i1 %$2, label %"rest", label %"end.1"
body:
  %$7 = load i64, i64* %"k"
  %$8 = mul i64 %$7, 64
  %$9 = add i64 %".2", %$8
  %$10 = load i64, i64* %"k"
  %$11 = add i64 %$10, 1
  store i64 %$11, i64* %"k"
  %$12 = mul i64 8, 0
  %$13 = add i64 %$9, %$12
  %$14 = inttoptr i64 %$13 to i64*
  %$15 = load i64, i64* %$14
  %$16 = icmp eq i64 %$15, 0
  br i1 %$16, label %"yes", label %"no"
end.1:
  br label %"end"
rest:
  %$3 = mul i64 8, 124
  %$4 = add i64 %".1", %$3
  %$5 = inttoptr i64 %$4 to i64*
  %".7" = load atomic i64, i64* %$5 seq_cst, align 8
  %$6 = icmp ne i64 %".7", %".5"
  br i1 %$6, label %"body", label %"end.1"
yes:
  %$17 = mul i64 8, 1
  %$18 = add i64 %$9, %$17
  %$19 = inttoptr i64 %$18 to i64*
  %$20 = load i64, i64* %$19
  %$21 = mul i64 8, 2
  %$22 = add i64 %$9, %$21
  %$23 = inttoptr i64 %$22 to i64*
  %$24 = load i64, i64* %$23
  %$25 = mul i64 8, 3
  %$26 = add i64 %$9, %$25
  %$27 = inttoptr i64 %$26 to i64*
  %$28 = load i64, i64* %$27
  %$29 = mul i64 8, 4
  %$30 = add i64 %$9, %$29
  %$31 = inttoptr i64 %$30 to i64*
  %$32 = load i64, i64* %$31
  call void @"loop.launch"(i64 %".1", i64 %".5", i64 %".4", i64 0, i64 %$20, i64 %$24, i64 %$28, i64 %$32)
  br label %"end.2"
no:
  %$33 = mul i64 8, 0
  %$34 = add i64 %$9, %$33
  %$35 = inttoptr i64 %$34 to i64*
  %$36 = load i64, i64* %$35
  %$37 = icmp eq i64 %$36, 8
  br i1 %$37, label %"yes.1", label %"no.1"
end.2:
  br label %"head"
yes.1:
  call void @"loop.enter_blas"(i64 %".1")
  %$38 = mul i64 8, 1
  %$39 = add i64 %$9, %$38
  %$40 = inttoptr i64 %$39 to i64*
  %$41 = load i64, i64* %$40
  %$42 = mul i64 8, 2
  %$43 = add i64 %$9, %$42
  %$44 = inttoptr i64 %$43 to i64*
  %$45 = load i64, i64* %$44
  %$46 = mul i64 8, 3
  %$47 = add i64 %$9, %$46
  %$48 = inttoptr i64 %$47 to i64*
  %$49 = load i64, i64* %$48
  %$50 = mul i64 8, 4
  %$51 = add i64 %$9, %$50
  %$52 = inttoptr i64 %$51 to i64*
  %$53 = load i64, i64* %$52
  call void @"loop.launch"(i64 %".1", i64 %".5", i64 %".4", i64 0, i64 %$41, i64 %$45, i64 %$49, i64 %$53)
  call void @"loop.leave_blas"(i64 %".1")
  br label %"end.3"
no.1:
  %$54 = mul i64 8, 0
  %$55 = add i64 %$9, %$54
  %$56 = inttoptr i64 %$55 to i64*
  %$57 = load i64, i64* %$56
  %$58 = icmp eq i64 %$57, 3
  br i1 %$58, label %"yes.2", label %"no.2"
end.3:
  br label %"end.2"
yes.2:
  %$59 = mul i64 8, 1
  %$60 = add i64 %$9, %$59
  %$61 = inttoptr i64 %$60 to i64*
  %$62 = load i64, i64* %$61
  %$63 = mul i64 8, 2
  %$64 = add i64 %$9, %$63
  %$65 = inttoptr i64 %$64 to i64*
  %$66 = load i64, i64* %$65
  %$67 = mul i64 8, 3
  %$68 = add i64 %$9, %$67
  %$69 = inttoptr i64 %$68 to i64*
  %$70 = load i64, i64* %$69
  %$71 = inttoptr i64 %$66 to i64*
  %$72 = inttoptr i64 %$62 to void (i64*, i64, i64)*
  call void %$72(i64* %$71, i64 0, i64 %$70)
  br label %"end.4"
no.2:
  %$73 = mul i64 8, 0
  %$74 = add i64 %$9, %$73
  %$75 = inttoptr i64 %$74 to i64*
  %$76 = load i64, i64* %$75
  %$77 = icmp eq i64 %$76, 4
  br i1 %$77, label %"yes.3", label %"no.3"
end.4:
  br label %"end.3"
yes.3:
  call void @"loop.enter_blas"(i64 %".1")
  %$78 = mul i64 8, 1
  %$79 = add i64 %$9, %$78
  %$80 = inttoptr i64 %$79 to i64*
  %$81 = load i64, i64* %$80
  %$82 = load i64, i64* %"k"
  %$83 = mul i64 %$82, 64
  %$84 = add i64 %".2", %$83
  %$85 = mul i64 8, 3
  %$86 = add i64 %$9, %$85
  %$87 = inttoptr i64 %$86 to i64*
  %$88 = load i64, i64* %$87
  %$89 = mul i64 8, 4
  %$90 = add i64 %$9, %$89
  %$91 = inttoptr i64 %$90 to i64*
  %$92 = load i64, i64* %$91
  call void @"loop.launch"(i64 %".1", i64 %".5", i64 %".4", i64 4, i64 %$81, i64 %$84, i64 %$88, i64 %$92)
  call void @"loop.leave_blas"(i64 %".1")
  %$93 = load i64, i64* %"k"
  %$94 = mul i64 8, 1
  %$95 = add i64 %$9, %$94
  %$96 = inttoptr i64 %$95 to i64*
  %$97 = load i64, i64* %$96
  %$98 = add i64 %$93, %$97
  store i64 %$98, i64* %"k"
  br label %"end.5"
no.3:
  %$99 = mul i64 8, 0
  %$100 = add i64 %$9, %$99
  %$101 = inttoptr i64 %$100 to i64*
  %$102 = load i64, i64* %$101
  %$103 = icmp eq i64 %$102, 6
  br i1 %$103, label %"yes.4", label %"no.4"
end.5:
  br label %"end.4"
yes.4:
  %$104 = mul i64 8, 1
  %$105 = add i64 %$9, %$104
  %$106 = inttoptr i64 %$105 to i64*
  %$107 = load i64, i64* %$106
  %$108 = mul i64 8, 3
  %$109 = add i64 %$9, %$108
  %$110 = inttoptr i64 %$109 to i64*
  %$111 = load i64, i64* %$110
  %$112 = mul i64 8, 4
  %$113 = add i64 %$9, %$112
  %$114 = inttoptr i64 %$113 to i64*
  %$115 = load i64, i64* %$114
  call void @"loop.launch"(i64 %".1", i64 %".5", i64 %".4", i64 6, i64 %$107, i64 %$9, i64 %$111, i64 %$115)
  %$116 = load i64, i64* %"k"
  %$117 = mul i64 8, 1
  %$118 = add i64 %$9, %$117
  %$119 = inttoptr i64 %$118 to i64*
  %$120 = load i64, i64* %$119
  %$121 = add i64 %$116, %$120
  store i64 %$121, i64* %"k"
  br label %"end.6"
no.4:
  %$122 = mul i64 8, 0
  %$123 = add i64 %$9, %$122
  %$124 = inttoptr i64 %$123 to i64*
  %$125 = load i64, i64* %$124
  %$126 = icmp eq i64 %$125, 5
  br i1 %$126, label %"yes.5", label %"no.5"
end.6:
  br label %"end.5"
yes.5:
  %$127 = mul i64 8, 2
  %$128 = add i64 %$9, %$127
  %$129 = inttoptr i64 %$128 to i64*
  %$130 = load i64, i64* %$129
  %$131 = mul i64 8, 0
  %$132 = add i64 %$130, %$131
  %$133 = inttoptr i64 %$132 to i64*
  %$134 = load i64, i64* %$133
  %$135 = mul i64 8, 1
  %$136 = add i64 %$130, %$135
  %$137 = inttoptr i64 %$136 to i64*
  %$138 = load i64, i64* %$137
  %$139 = mul i64 8, 2
  %$140 = add i64 %$130, %$139
  %$141 = inttoptr i64 %$140 to i64*
  %$142 = load i64, i64* %$141
  %$143 = mul i64 8, 3
  %$144 = add i64 %$130, %$143
  %$145 = inttoptr i64 %$144 to i64*
  %$146 = load i64, i64* %$145
  %$147 = mul i64 8, 4
  %$148 = add i64 %$130, %$147
  %$149 = inttoptr i64 %$148 to i64*
  %$150 = load i64, i64* %$149
  %$151 = mul i64 8, 3
  %$152 = add i64 %$9, %$151
  %$153 = inttoptr i64 %$152 to i64*
  %$154 = load i64, i64* %$153
  call void @"loop.relocate"(i64 %$134, i64 %$138, i64 %$142, i64 %$146, i64 %$150, i64 %$154)
  br label %"end.7"
no.5:
  %$155 = mul i64 8, 0
  %$156 = add i64 %$9, %$155
  %$157 = inttoptr i64 %$156 to i64*
  %$158 = load i64, i64* %$157
  %$159 = icmp eq i64 %$158, 7
  br i1 %$159, label %"yes.6", label %"no.6"
end.7:
  br label %"end.6"
yes.6:
  %$160 = mul i64 8, 2
  %$161 = add i64 %$9, %$160
  %$162 = inttoptr i64 %$161 to i64*
  %$163 = load i64, i64* %$162
  %$164 = mul i64 8, 0
  %$165 = add i64 %$163, %$164
  %$166 = inttoptr i64 %$165 to i64*
  %$167 = load i64, i64* %$166
  %$168 = mul i64 8, 0
  %$169 = add i64 %$167, %$168
  %$170 = inttoptr i64 %$169 to i64*
  %$171 = load i64, i64* %$170
  %$172 = icmp ne i64 %$171, 0
  br i1 %$172, label %"yes.7", label %"no.7"
no.6:
  %$173 = mul i64 8, 0
  %$174 = add i64 %$9, %$173
  %$175 = inttoptr i64 %$174 to i64*
  %$176 = load i64, i64* %$175
  %$177 = icmp eq i64 %$176, 9
  br i1 %$177, label %"yes.8", label %"no.8"
end.8:
  br label %"end.7"
yes.7:
  store i64 %".3", i64* %"k"
  br label %"end.9"
no.7:
  br label %"end.9"
end.9:
  br label %"end.8"
yes.8:
  call void @"loop.repeat"(i64 %".1", i64 %".5", i64 %".4", i64 %$9)
  br label %"end.10"
no.8:
  %$178 = mul i64 8, 0
  %$179 = add i64 %$9, %$178
  %$180 = inttoptr i64 %$179 to i64*
  %$181 = load i64, i64* %$180
  %$182 = mul i64 8, 1
  %$183 = add i64 %$9, %$182
  %$184 = inttoptr i64 %$183 to i64*
  %$185 = load i64, i64* %$184
  %$186 = mul i64 8, 2
  %$187 = add i64 %$9, %$186
  %$188 = inttoptr i64 %$187 to i64*
  %$189 = load i64, i64* %$188
  call void @"loop.multiply"(i64 %".1", i64 %".5", i64 %".4", i64 %$181, i64 %$185, i64 %$189)
  br label %"end.10"
end.10:
  br label %"end.8"
}

define internal void @"loop.work"(i64 %".1") alwaysinline optsize
{
entry:
  %"spins" = alloca i64
  store i64 0, i64* %"spins"
  br label %"head"
end:
  ret void
head:
  %$1 = mul i64 8, 48
  %$2 = add i64 %".1", %$1
  %$3 = inttoptr i64 %$2 to i64*
  %".3" = load atomic i64, i64* %$3 seq_cst, align 8
  %$4 = icmp eq i64 %".3", 0
  br i1 %$4, label %"body", label %"end.1"
body:
  %$5 = mul i64 8, 0
  %$6 = add i64 %".1", %$5
  %$7 = inttoptr i64 %$6 to i64*
  %".4" = load atomic i64, i64* %$7 seq_cst, align 8
  %$8 = call i64 @"loop.claim"(i64 %".1")
  %$9 = icmp ne i64 %$8, 0
  br i1 %$9, label %"yes", label %"no"
end.1:
  br label %"end"
yes:
  store i64 0, i64* %"spins"
  br label %"end.2"
no:
  %$10 = load i64, i64* %"spins"
  %$11 = icmp slt i64 %$10, 400
  br i1 %$11, label %"yes.1", label %"no.1"
end.2:
  br label %"head"
yes.1:
  call void @"llvm.x86.sse2.pause"()
  %$12 = load i64, i64* %"spins"
  %$13 = add i64 %$12, 1
  store i64 %$13, i64* %"spins"
  br label %"end.3"
no.1:
  call void @"loop.park"(i64 %".1", i64 %".4")
  call void @"loop.wake"(i64 %".1")
  store i64 0, i64* %"spins"
  br label %"end.3"
end.3:
  br label %"end.2"
}

define internal void @"loop.loop"(i64 %".1", i64 %".2", i64 %".3") alwaysinline optsize
{
entry:
  %$1 = icmp eq i64 %".3", -1
  br i1 %$1, label %"yes", label %"no"
end:
  ret void
yes:
  call void @"loop.work"(i64 %".1")
  br label %"end.1"
no:
  %$2 = icmp slt i64 %".3", -1
  br i1 %$2, label %"yes.1", label %"no.1"
end.1:
  br label %"end"
yes.1:
  %$3 = sub i64 -1, %".3"
  %$4 = mul i64 8, 125
  %$5 = add i64 %".1", %$4
  %$6 = inttoptr i64 %$5 to i64*
  %$7 = load i64, i64* %$6
  call void @"loop.steps"(i64 %".1", i64 %".2", i64 %$3, i64 1, i64 %$7)
  br label %"end.2"
no.1:
  call void @"loop.run"(i64 %".1", i64 %".2", i64 %".3")
  br label %"end.2"
end.2:
  br label %"end.1"
}

declare void @"llvm.x86.sse2.pause"()

define void @loop(ptr %args, i64 %start, i64 %stop) nounwind {
%p0 = getelementptr i64, ptr %args, i64 0
%w0 = load i64, ptr %p0
%a0 = add i64 %w0, 0
call void @"loop.loop"(i64 %a0, i64 %start, i64 %stop)

ret void
}
