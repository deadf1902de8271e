; x86_64, pointers as i64*, source 06b24212db40a84d5192068e5b3aac77f98c38688f2665ed2ddbc14325af987a
; ModuleID = "find"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define internal void @"find.find"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") alwaysinline optsize
{
entry:
  %".9" = alloca i64
  %$1 = mul i64 8, 0
  %$2 = add i64 %".3", %$1
  %$3 = inttoptr i64 %$2 to i64*
  store i64 0, i64* %$3
  %$4 = mul i64 8, 0
  %$5 = add i64 %".1", %$4
  %$6 = inttoptr i64 %$5 to i64*
  %".7" = cmpxchg i64* %$6, i64 0, i64 1 seq_cst seq_cst
  %".8" = extractvalue {i64, i1} %".7", 1
  %$7 = zext i1 %".8" to i64
  %$8 = icmp ne i64 %$7, 0
  br i1 %$8, label %"yes", label %"no"
end:
  ret void
yes:
  %$9 = mul i64 8, 2
  %$10 = add i64 %".1", %$9
  %$11 = inttoptr i64 %$10 to i64*
  %$12 = load i64, i64* %$11
  %$13 = add i64 %$12, %".2"
  %$14 = mul i64 8, 2
  %$15 = add i64 %".1", %$14
  %$16 = inttoptr i64 %$15 to i64*
  store i64 %$13, i64* %$16
  store i64 0, i64* %".9"
  br label %"head"
no:
  br label %"end.1"
end.1:
  br label %"end"
head:
  %$17 = load i64, i64* %".9"
  %$18 = icmp slt i64 %$17, 64
  br i1 %$18, label %"body", label %"end.2"
body:
  %$19 = add i64 69, %$17
  %$20 = mul i64 8, %$19
  %$21 = add i64 %".1", %$20
  %$22 = inttoptr i64 %$21 to i64*
  %$23 = load i64, i64* %$22
  %$24 = icmp eq i64 %$23, %".2"
  br i1 %$24, label %"rest", label %"no.1"
end.2:
  %$51 = mul i64 8, 0
  %$52 = add i64 %".1", %$51
  %$53 = inttoptr i64 %$52 to i64*
  store atomic i64 0, i64* %$53 seq_cst, align 8
  br label %"end.1"
yes.1:
  %$30 = add i64 5, %$17
  %$31 = mul i64 8, %$30
  %$32 = add i64 %".1", %$31
  %$33 = inttoptr i64 %$32 to i64*
  %$34 = load i64, i64* %$33
  %$35 = mul i64 8, 0
  %$36 = add i64 %".3", %$35
  %$37 = inttoptr i64 %$36 to i64*
  store i64 %$34, i64* %$37
  %$38 = add i64 69, %$17
  %$39 = mul i64 8, %$38
  %$40 = add i64 %".1", %$39
  %$41 = inttoptr i64 %$40 to i64*
  store i64 0, i64* %$41
  %$42 = mul i64 8, 1
  %$43 = add i64 %".1", %$42
  %$44 = inttoptr i64 %$43 to i64*
  %$45 = load i64, i64* %$44
  %$46 = sub i64 %$45, %".2"
  %$47 = mul i64 8, 1
  %$48 = add i64 %".1", %$47
  %$49 = inttoptr i64 %$48 to i64*
  store i64 %$46, i64* %$49
  br label %"end.3"
no.1:
  br label %"end.3"
end.3:
  %$50 = add nsw i64 %$17, 1
  store i64 %$50, i64* %".9"
  br label %"head"
rest:
  %$25 = mul i64 8, 0
  %$26 = add i64 %".3", %$25
  %$27 = inttoptr i64 %$26 to i64*
  %$28 = load i64, i64* %$27
  %$29 = icmp eq i64 %$28, 0
  br i1 %$29, label %"yes.1", label %"no.1"
}

define void @find(ptr %args, i64 %start, i64 %stop) nounwind {
%p0 = getelementptr i64, ptr %args, i64 0
%w0 = load i64, ptr %p0
%a0 = add i64 %w0, 0
%p1 = getelementptr i64, ptr %args, i64 1
%w1 = load i64, ptr %p1
%a1 = add i64 %w1, 0
%p2 = getelementptr i64, ptr %args, i64 2
%w2 = load i64, ptr %p2
%a2 = add i64 %w2, 0
call void @"find.find"(i64 %a0, i64 %a1, i64 %a2, i64 %start, i64 %stop)

ret void
}
