; x86_64, pointers as i64*, source dee245d75e28c67ec5871fcef69deb3a95aa57a8b287a66f312bdb85ad59bd8c
; ModuleID = "product"
target triple = "unknown-unknown-unknown"
target datalayout = ""

define internal void @"product.product"(i64 %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5", i64 %".6", i64 %".7", i64 %".8", i64 %".9", i64 %".10", i64 %".11", i64 %".12", i64 %".13", i64 %".14", i64 %".15", i64 %".16", i64 %".17", i64 %".18") alwaysinline optsize
{
entry:
  %"stride" = alloca i64
  %"out" = alloca i64
  %".23" = alloca i64
  %"panel" = alloca i64
  %"first" = alloca i64
  %".22" = alloca i64
  %".21" = alloca i64
  %".20" = alloca i64
  %"z" = alloca i64
  %"y" = alloca i64
  %"x" = alloca i64
  %"j" = alloca i64
  %"i" = alloca i64
  %"n" = alloca i64
  store i64 %".5", i64* %"n"
  %$1 = add i64 98304, 1536
  %$2 = add i64 %$1, 64
  %$3 = call i64 @"malloc"(i64 %$2)
  %$4 = icmp eq i64 %$3, 0
  br i1 %$4, label %"yes", label %"no"
end:
  ret void
yes:
  call void @"abort"()
  br label %"end.1"
no:
  br label %"end.1"
end.1:
  %$5 = add i64 %$3, 64
  %$6 = sub i64 %$5, 1
  %$7 = and i64 %$6, -64
  %$8 = add i64 %$7, 98304
  %$9 = icmp ne i64 %".10", 0
  %$10 = zext i1 %$9 to i64
  %$11 = icmp ne i64 %$10, 0
  %$12 = select i1 %$11, i64 1, i64 %".9"
  %$13 = icmp ne i64 %".10", 0
  %$14 = zext i1 %$13 to i64
  %$15 = icmp ne i64 %$14, 0
  %$16 = select i1 %$15, i64 %".9", i64 1
  %$17 = icmp eq i64 %".12", 0
  %$18 = sub i64 %".18", %".17"
  %$19 = zext i1 %$17 to i64
  %$20 = icmp ne i64 %$19, 0
  %$21 = select i1 %$20, i64 %$18, i64 %".4"
  %$22 = icmp eq i64 %".12", 1
  %$23 = sub i64 %".18", %".17"
  %$24 = load i64, i64* %"n"
  %$25 = zext i1 %$22 to i64
  %$26 = icmp ne i64 %$25, 0
  %$27 = select i1 %$26, i64 %$23, i64 %$24
  store i64 %$27, i64* %"n"
  %$28 = icmp eq i64 %".12", 0
  %$29 = zext i1 %$28 to i64
  %$30 = icmp ne i64 %$29, 0
  %$31 = select i1 %$30, i64 %".17", i64 0
  store i64 %$31, i64* %"i"
  %$32 = icmp eq i64 %".12", 1
  %$33 = zext i1 %$32 to i64
  %$34 = icmp ne i64 %$33, 0
  %$35 = select i1 %$34, i64 %".17", i64 0
  store i64 %$35, i64* %"j"
  %$36 = icmp eq i64 %".12", 2
  %$37 = mul i64 %".17", %".13"
  %$38 = load i64, i64* %"i"
  %$39 = mul i64 %$38, %".7"
  %$40 = zext i1 %$36 to i64
  %$41 = icmp ne i64 %$40, 0
  %$42 = select i1 %$41, i64 %$37, i64 %$39
  %$43 = mul i64 %$42, 4
  %$44 = add i64 %".1", %$43
  store i64 %$44, i64* %"x"
  %$45 = icmp eq i64 %".12", 2
  %$46 = mul i64 %".17", %".14"
  %$47 = load i64, i64* %"j"
  %$48 = mul i64 %$47, %$16
  %$49 = zext i1 %$45 to i64
  %$50 = icmp ne i64 %$49, 0
  %$51 = select i1 %$50, i64 %$46, i64 %$48
  %$52 = mul i64 %$51, 4
  %$53 = add i64 %".2", %$52
  store i64 %$53, i64* %"y"
  %$54 = icmp eq i64 %".12", 2
  %$55 = mul i64 %".17", %".15"
  %$56 = load i64, i64* %"i"
  %$57 = mul i64 %$56, %".11"
  %$58 = load i64, i64* %"j"
  %$59 = add i64 %$57, %$58
  %$60 = zext i1 %$54 to i64
  %$61 = icmp ne i64 %$60, 0
  %$62 = select i1 %$61, i64 %$55, i64 %$59
  %$63 = mul i64 %$62, 4
  %$64 = add i64 %".3", %$63
  store i64 %$64, i64* %"z"
  %$65 = icmp eq i64 %".12", 2
  %$66 = sub i64 %".18", %".17"
  %$67 = zext i1 %$65 to i64
  %$68 = icmp ne i64 %$67, 0
  %$69 = select i1 %$68, i64 %$66, i64 1
  store i64 0, i64* %".20"
  br label %"head"
head:
  %$70 = load i64, i64* %".20"
  %$71 = icmp slt i64 %$70, %$69
  br i1 %$71, label %"body", label %"end.2"
body:
  store i64 0, i64* %".21"
  br label %"head.1"
end.2:
  call void @"free"(i64 %$3)
  br label %"end"
head.1:
  %$72 = load i64, i64* %".21"
  %$73 = icmp slt i64 %$72, %".6"
  br i1 %$73, label %"body.1", label %"end.3"
body.1:
  %$74 = sub i64 %".6", %$72
  %$75 = icmp slt i64 128, %$74
  %$76 = select i1 %$75, i64 128, i64 %$74
  %$77 = srem i64 384, %$76
  %$78 = xor i64 %$77, %$76
  %$79 = icmp slt i64 %$78, 0
  %$80 = icmp ne i64 %$77, 0
  %$81 = and i1 %$79, %$80
  %$82 = sdiv i64 384, %$76
  %$83 = zext i1 %$81 to i64
  %$84 = sub i64 %$82, %$83
  %$85 = mul i64 %$84, 64
  store i64 0, i64* %"j"
  br label %"head.2"
end.3:
  %$221 = load i64, i64* %"x"
  %$222 = mul i64 %".13", 4
  %$223 = add i64 %$221, %$222
  store i64 %$223, i64* %"x"
  %$224 = load i64, i64* %"y"
  %$225 = mul i64 %".14", 4
  %$226 = add i64 %$224, %$225
  store i64 %$226, i64* %"y"
  %$227 = load i64, i64* %"z"
  %$228 = mul i64 %".15", 4
  %$229 = add i64 %$227, %$228
  store i64 %$229, i64* %"z"
  %$230 = add nsw i64 %$70, 1
  store i64 %$230, i64* %".20"
  br label %"head"
head.2:
  %$86 = load i64, i64* %"j"
  %$87 = load i64, i64* %"n"
  %$88 = icmp slt i64 %$86, %$87
  br i1 %$88, label %"body.2", label %"end.4"
body.2:
  %$89 = load i64, i64* %"n"
  %$90 = load i64, i64* %"j"
  %$91 = add i64 %$90, %$85
  %$92 = icmp slt i64 %$89, %$91
  %$93 = select i1 %$92, i64 %$89, i64 %$91
  %$94 = load i64, i64* %"j"
  store i64 %$94, i64* %".22"
  br label %"head.3"
end.4:
  %$220 = add nsw i64 %$72, 128
  store i64 %$220, i64* %".21"
  br label %"head.1"
head.3:
  %$95 = load i64, i64* %".22"
  %$96 = icmp slt i64 %$95, %$93
  br i1 %$96, label %"body.3", label %"end.5"
body.3:
  store i64 %$95, i64* %"first"
  %$97 = load i64, i64* %"first"
  %$98 = load i64, i64* %"j"
  %$99 = sub i64 %$97, %$98
  %$100 = mul i64 %$99, %$76
  %$101 = mul i64 %$100, 4
  %$102 = add i64 %$7, %$101
  store i64 %$102, i64* %"panel"
  %$103 = load i64, i64* %"y"
  %$104 = mul i64 %$72, %$12
  %$105 = load i64, i64* %"first"
  %$106 = mul i64 %$105, %$16
  %$107 = add i64 %$104, %$106
  %$108 = mul i64 %$107, 4
  %$109 = add i64 %$103, %$108
  %$110 = icmp ne i64 %".10", 0
  br i1 %$110, label %"yes.1", label %"no.1"
end.5:
  store i64 0, i64* %"i"
  br label %"head.4"
yes.1:
  %$111 = load i64, i64* %"panel"
  %$112 = load i64, i64* %"n"
  %$113 = load i64, i64* %"first"
  %$114 = sub i64 %$112, %$113
  %$115 = icmp slt i64 64, %$114
  %$116 = select i1 %$115, i64 64, i64 %$114
  %$117 = inttoptr i64 %$111 to float*
  %$118 = inttoptr i64 %$109 to float*
  call void @"columns_to_panel"(float* %$117, float* %$118, i64 %".9", i64 %$116, i64 %$76)
  br label %"end.6"
no.1:
  %$119 = load i64, i64* %"panel"
  %$120 = load i64, i64* %"n"
  %$121 = load i64, i64* %"first"
  %$122 = sub i64 %$120, %$121
  %$123 = icmp slt i64 64, %$122
  %$124 = select i1 %$123, i64 64, i64 %$122
  %$125 = inttoptr i64 %$119 to float*
  %$126 = inttoptr i64 %$109 to float*
  call void @"rows_to_panel"(float* %$125, float* %$126, i64 %".9", i64 %$124, i64 %$76)
  br label %"end.6"
end.6:
  %$127 = add nsw i64 %$95, 64
  store i64 %$127, i64* %".22"
  br label %"head.3"
head.4:
  %$128 = load i64, i64* %"i"
  %$129 = icmp slt i64 %$128, %$21
  br i1 %$129, label %"body.4", label %"end.7"
body.4:
  %$130 = load i64, i64* %"i"
  %$131 = sub i64 %$21, %$130
  %$132 = icmp sge i64 %$131, 6
  %$133 = load i64, i64* %"i"
  %$134 = sub i64 %$21, %$133
  %$135 = icmp sge i64 %$134, 4
  %$136 = load i64, i64* %"i"
  %$137 = sub i64 %$21, %$136
  %$138 = icmp sge i64 %$137, 2
  %$139 = zext i1 %$138 to i64
  %$140 = icmp ne i64 %$139, 0
  %$141 = select i1 %$140, i64 2, i64 1
  %$142 = zext i1 %$135 to i64
  %$143 = icmp ne i64 %$142, 0
  %$144 = select i1 %$143, i64 4, i64 %$141
  %$145 = zext i1 %$132 to i64
  %$146 = icmp ne i64 %$145, 0
  %$147 = select i1 %$146, i64 6, i64 %$144
  %$148 = icmp eq i64 %".8", 1
  br i1 %$148, label %"yes.2", label %"rest"
end.7:
  store i64 %$93, i64* %"j"
  br label %"head.2"
yes.2:
  %$150 = load i64, i64* %"x"
  %$151 = load i64, i64* %"i"
  %$152 = add i64 %$151, %$147
  %$153 = mul i64 %$152, %".7"
  %$154 = mul i64 %$72, %".8"
  %$155 = add i64 %$153, %$154
  %$156 = mul i64 %$155, 4
  %$157 = add i64 %$150, %$156
  %$158 = inttoptr i64 %$157 to float*
  call void @"prefetch_rows"(float* %$158, i64 %".7", i64 %".8", i64 %$76, i64 %$147)
  br label %"end.8"
no.2:
  br label %"end.8"
end.8:
  %$159 = load i64, i64* %"j"
  store i64 %$159, i64* %".23"
  br label %"head.5"
rest:
  %$149 = icmp sge i64 %$21, 128
  br i1 %$149, label %"yes.2", label %"no.2"
head.5:
  %$160 = load i64, i64* %".23"
  %$161 = icmp slt i64 %$160, %$93
  br i1 %$161, label %"body.5", label %"end.9"
body.5:
  store i64 %$160, i64* %"first"
  %$162 = load i64, i64* %"z"
  %$163 = load i64, i64* %"i"
  %$164 = mul i64 %$163, %".11"
  %$165 = load i64, i64* %"first"
  %$166 = add i64 %$164, %$165
  %$167 = mul i64 %$166, 4
  %$168 = add i64 %$162, %$167
  store i64 %$168, i64* %"out"
  store i64 %".11", i64* %"stride"
  %$169 = load i64, i64* %"first"
  %$170 = add i64 %$169, 64
  %$171 = load i64, i64* %"n"
  %$172 = icmp sgt i64 %$170, %$171
  br i1 %$172, label %"yes.3", label %"no.3"
end.9:
  %$218 = load i64, i64* %"i"
  %$219 = add i64 %$218, %$147
  store i64 %$219, i64* %"i"
  br label %"head.4"
yes.3:
  %$173 = load i64, i64* %"out"
  %$174 = load i64, i64* %"n"
  %$175 = load i64, i64* %"first"
  %$176 = sub i64 %$174, %$175
  %$177 = inttoptr i64 %$8 to float*
  %$178 = inttoptr i64 %$173 to float*
  call void @"copy_rows"(float* %$177, i64 64, float* %$178, i64 %".11", i64 %$176, i64 %$147)
  store i64 %$8, i64* %"out"
  store i64 64, i64* %"stride"
  br label %"end.10"
no.3:
  br label %"end.10"
end.10:
  %$179 = load i64, i64* %"x"
  %$180 = load i64, i64* %"i"
  %$181 = mul i64 %$180, %".7"
  %$182 = mul i64 %$72, %".8"
  %$183 = add i64 %$181, %$182
  %$184 = mul i64 %$183, 4
  %$185 = add i64 %$179, %$184
  %$186 = load i64, i64* %"first"
  %$187 = load i64, i64* %"j"
  %$188 = sub i64 %$186, %$187
  %$189 = mul i64 %$188, %$76
  %$190 = mul i64 %$189, 4
  %$191 = add i64 %$7, %$190
  store i64 %$191, i64* %"panel"
  %$192 = load i64, i64* %"out"
  %$193 = load i64, i64* %"stride"
  %$194 = load i64, i64* %"panel"
  %$195 = add i64 %$72, %".16"
  %$196 = icmp sgt i64 %$195, 0
  %$197 = zext i1 %$196 to i64
  %$198 = inttoptr i64 %$192 to float*
  %$199 = inttoptr i64 %$185 to float*
  %$200 = inttoptr i64 %$194 to float*
  call void @"tile"(float* %$198, i64 %$193, float* %$199, i64 %".7", i64 %".8", float* %$200, i64 %$76, i64 %$197, i64 %$147)
  %$201 = load i64, i64* %"first"
  %$202 = add i64 %$201, 64
  %$203 = load i64, i64* %"n"
  %$204 = icmp sgt i64 %$202, %$203
  br i1 %$204, label %"yes.4", label %"no.4"
yes.4:
  %$205 = load i64, i64* %"z"
  %$206 = load i64, i64* %"i"
  %$207 = mul i64 %$206, %".11"
  %$208 = load i64, i64* %"first"
  %$209 = add i64 %$207, %$208
  %$210 = mul i64 %$209, 4
  %$211 = add i64 %$205, %$210
  %$212 = load i64, i64* %"n"
  %$213 = load i64, i64* %"first"
  %$214 = sub i64 %$212, %$213
  %$215 = inttoptr i64 %$211 to float*
  %$216 = inttoptr i64 %$8 to float*
  call void @"copy_rows"(float* %$215, i64 %".11", float* %$216, i64 64, i64 %$214, i64 %$147)
  br label %"end.11"
no.4:
  br label %"end.11"
end.11:
  %$217 = add nsw i64 %$160, 64
  store i64 %$217, i64* %".23"
  br label %"head.5"
}

declare i64 @"malloc"(i64 %".1")

declare void @"abort"()

define internal void @"columns_to_panel"(float* noalias %".1", float* noalias %".2", i64 %".3", i64 %".4", i64 %".5") noinline
{
.7:
  %".32" = alloca i64
  %".31" = alloca i64
  %".30" = alloca i64
  %".9" = alloca i64
  %".8" = alloca i64
  %$1 = and i64 %".4", -16
  %$2 = and i64 %".5", -4
  store i64 0, i64* %".8"
  br label %"head"
head:
  %$3 = load i64, i64* %".8"
  %$4 = icmp slt i64 %$3, %$1
  br i1 %$4, label %"body", label %"end"
body:
  store i64 0, i64* %".9"
  br label %"head.1"
end:
  store i64 0, i64* %".30"
  br label %"head.2"
head.1:
  %$5 = load i64, i64* %".9"
  %$6 = icmp slt i64 %$5, %$2
  br i1 %$6, label %"body.1", label %"end.1"
body.1:
  %$7 = mul i64 %$5, 64
  %$8 = getelementptr float, float* %".1", i64 %$7
  %$9 = getelementptr float, float* %$8, i64 %$3
  %$10 = getelementptr float, float* %".2", i64 %$5
  %$11 = mul i64 %$3, %".3"
  %$12 = getelementptr float, float* %$10, i64 %$11
  %$13 = mul i64 0, %".3"
  %$14 = getelementptr float, float* %$12, i64 %$13
  %$15 = bitcast float* %$14 to <4 x float>*
  %$16 = load <4 x float>, <4 x float>* %$15, align 4
  %$17 = mul i64 1, %".3"
  %$18 = getelementptr float, float* %$12, i64 %$17
  %$19 = bitcast float* %$18 to <4 x float>*
  %$20 = load <4 x float>, <4 x float>* %$19, align 4
  %$21 = mul i64 2, %".3"
  %$22 = getelementptr float, float* %$12, i64 %$21
  %$23 = bitcast float* %$22 to <4 x float>*
  %$24 = load <4 x float>, <4 x float>* %$23, align 4
  %$25 = mul i64 3, %".3"
  %$26 = getelementptr float, float* %$12, i64 %$25
  %$27 = bitcast float* %$26 to <4 x float>*
  %$28 = load <4 x float>, <4 x float>* %$27, align 4
  %$29 = mul i64 4, %".3"
  %$30 = getelementptr float, float* %$12, i64 %$29
  %$31 = bitcast float* %$30 to <4 x float>*
  %$32 = load <4 x float>, <4 x float>* %$31, align 4
  %$33 = mul i64 5, %".3"
  %$34 = getelementptr float, float* %$12, i64 %$33
  %$35 = bitcast float* %$34 to <4 x float>*
  %$36 = load <4 x float>, <4 x float>* %$35, align 4
  %$37 = mul i64 6, %".3"
  %$38 = getelementptr float, float* %$12, i64 %$37
  %$39 = bitcast float* %$38 to <4 x float>*
  %$40 = load <4 x float>, <4 x float>* %$39, align 4
  %$41 = mul i64 7, %".3"
  %$42 = getelementptr float, float* %$12, i64 %$41
  %$43 = bitcast float* %$42 to <4 x float>*
  %$44 = load <4 x float>, <4 x float>* %$43, align 4
  %$45 = mul i64 8, %".3"
  %$46 = getelementptr float, float* %$12, i64 %$45
  %$47 = bitcast float* %$46 to <4 x float>*
  %$48 = load <4 x float>, <4 x float>* %$47, align 4
  %$49 = mul i64 9, %".3"
  %$50 = getelementptr float, float* %$12, i64 %$49
  %$51 = bitcast float* %$50 to <4 x float>*
  %$52 = load <4 x float>, <4 x float>* %$51, align 4
  %$53 = mul i64 10, %".3"
  %$54 = getelementptr float, float* %$12, i64 %$53
  %$55 = bitcast float* %$54 to <4 x float>*
  %$56 = load <4 x float>, <4 x float>* %$55, align 4
  %$57 = mul i64 11, %".3"
  %$58 = getelementptr float, float* %$12, i64 %$57
  %$59 = bitcast float* %$58 to <4 x float>*
  %$60 = load <4 x float>, <4 x float>* %$59, align 4
  %$61 = mul i64 12, %".3"
  %$62 = getelementptr float, float* %$12, i64 %$61
  %$63 = bitcast float* %$62 to <4 x float>*
  %$64 = load <4 x float>, <4 x float>* %$63, align 4
  %$65 = mul i64 13, %".3"
  %$66 = getelementptr float, float* %$12, i64 %$65
  %$67 = bitcast float* %$66 to <4 x float>*
  %$68 = load <4 x float>, <4 x float>* %$67, align 4
  %$69 = mul i64 14, %".3"
  %$70 = getelementptr float, float* %$12, i64 %$69
  %$71 = bitcast float* %$70 to <4 x float>*
  %$72 = load <4 x float>, <4 x float>* %$71, align 4
  %$73 = mul i64 15, %".3"
  %$74 = getelementptr float, float* %$12, i64 %$73
  %$75 = bitcast float* %$74 to <4 x float>*
  %$76 = load <4 x float>, <4 x float>* %$75, align 4
  %".10" = shufflevector <4 x float> %$16, <4 x float> %$32, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".11" = shufflevector <4 x float> %$48, <4 x float> %$64, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".12" = shufflevector <8 x float> %".10", <8 x float> %".11", <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %".13" = shufflevector <4 x float> %$20, <4 x float> %$36, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".14" = shufflevector <4 x float> %$52, <4 x float> %$68, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".15" = shufflevector <8 x float> %".13", <8 x float> %".14", <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %".16" = shufflevector <4 x float> %$24, <4 x float> %$40, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".17" = shufflevector <4 x float> %$56, <4 x float> %$72, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".18" = shufflevector <8 x float> %".16", <8 x float> %".17", <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %".19" = shufflevector <4 x float> %$28, <4 x float> %$44, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".20" = shufflevector <4 x float> %$60, <4 x float> %$76, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".21" = shufflevector <8 x float> %".19", <8 x float> %".20", <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %".22" = shufflevector <16 x float> %".12", <16 x float> %".15", <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %".23" = shufflevector <16 x float> %".12", <16 x float> %".15", <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %".24" = shufflevector <16 x float> %".18", <16 x float> %".21", <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %".25" = shufflevector <16 x float> %".18", <16 x float> %".21", <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %".26" = shufflevector <16 x float> %".22", <16 x float> %".24", <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %".27" = shufflevector <16 x float> %".22", <16 x float> %".24", <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %".28" = shufflevector <16 x float> %".23", <16 x float> %".25", <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %".29" = shufflevector <16 x float> %".23", <16 x float> %".25", <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %$77 = getelementptr float, float* %$9, i64 0
  %$78 = bitcast float* %$77 to <16 x float>*
  store <16 x float> %".26", <16 x float>* %$78, align 4
  %$79 = getelementptr float, float* %$9, i64 64
  %$80 = bitcast float* %$79 to <16 x float>*
  store <16 x float> %".27", <16 x float>* %$80, align 4
  %$81 = getelementptr float, float* %$9, i64 128
  %$82 = bitcast float* %$81 to <16 x float>*
  store <16 x float> %".28", <16 x float>* %$82, align 4
  %$83 = getelementptr float, float* %$9, i64 192
  %$84 = bitcast float* %$83 to <16 x float>*
  store <16 x float> %".29", <16 x float>* %$84, align 4
  %$85 = add nsw i64 %$5, 4
  store i64 %$85, i64* %".9"
  br label %"head.1"
end.1:
  %$86 = add nsw i64 %$3, 16
  store i64 %$86, i64* %".8"
  br label %"head"
head.2:
  %$87 = load i64, i64* %".30"
  %$88 = icmp slt i64 %$87, %".5"
  br i1 %$88, label %"body.2", label %"end.2"
body.2:
  %$89 = mul i64 %$87, 64
  %$90 = getelementptr float, float* %".1", i64 %$89
  store i64 %$1, i64* %".31"
  br label %"head.3"
end.2:
  ret void
head.3:
  %$91 = load i64, i64* %".31"
  %$92 = icmp slt i64 %$91, 64
  br i1 %$92, label %"body.3", label %"end.3"
body.3:
  %$93 = getelementptr float, float* %$90, i64 %$91
  %$94 = bitcast float* %$93 to <16 x float>*
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %$94, align 4
  %$95 = add nsw i64 %$91, 16
  store i64 %$95, i64* %".31"
  br label %"head.3"
end.3:
  %$96 = icmp slt i64 %$87, %$2
  %$97 = select i1 %$96, i64 %$1, i64 0
  store i64 %$97, i64* %".32"
  br label %"head.4"
head.4:
  %$98 = load i64, i64* %".32"
  %$99 = icmp slt i64 %$98, %".4"
  br i1 %$99, label %"body.4", label %"end.4"
body.4:
  %$100 = getelementptr float, float* %".2", i64 %$87
  %$101 = mul i64 %$98, %".3"
  %$102 = getelementptr float, float* %$100, i64 %$101
  %$103 = load float, float* %$102, align 4
  %$104 = getelementptr float, float* %$90, i64 %$98
  store float %$103, float* %$104, align 4
  %$105 = add nsw i64 %$98, 1
  store i64 %$105, i64* %".32"
  br label %"head.4"
end.4:
  %$106 = add nsw i64 %$87, 1
  store i64 %$106, i64* %".30"
  br label %"head.2"
}

define internal void @"rows_to_panel"(float* noalias %".1", float* noalias %".2", i64 %".3", i64 %".4", i64 %".5") noinline
{
.7:
  %".10" = alloca i64
  %".8" = insertelement <16 x i64> <i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef>, i64 %".4", i32 0
  %".9" = shufflevector <16 x i64> %".8", <16 x i64> <i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$1 = icmp slt <16 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>, %".9"
  %$2 = icmp slt <16 x i64> <i64 16, i64 17, i64 18, i64 19, i64 20, i64 21, i64 22, i64 23, i64 24, i64 25, i64 26, i64 27, i64 28, i64 29, i64 30, i64 31>, %".9"
  %$3 = icmp slt <16 x i64> <i64 32, i64 33, i64 34, i64 35, i64 36, i64 37, i64 38, i64 39, i64 40, i64 41, i64 42, i64 43, i64 44, i64 45, i64 46, i64 47>, %".9"
  %$4 = icmp slt <16 x i64> <i64 48, i64 49, i64 50, i64 51, i64 52, i64 53, i64 54, i64 55, i64 56, i64 57, i64 58, i64 59, i64 60, i64 61, i64 62, i64 63>, %".9"
  store i64 0, i64* %".10"
  br label %"head"
head:
  %$5 = load i64, i64* %".10"
  %$6 = icmp slt i64 %$5, %".5"
  br i1 %$6, label %"body", label %"end"
body:
  %$7 = mul i64 %$5, %".3"
  %$8 = getelementptr float, float* %".2", i64 %$7
  %$9 = getelementptr float, float* %$8, i64 0
  %$10 = bitcast float* %$9 to <16 x float>*
  %$11 = getelementptr float, float* %$8, i64 16
  %$12 = bitcast float* %$11 to <16 x float>*
  %$13 = getelementptr float, float* %$8, i64 32
  %$14 = bitcast float* %$13 to <16 x float>*
  %$15 = getelementptr float, float* %$8, i64 48
  %$16 = bitcast float* %$15 to <16 x float>*
  %$17 = mul i64 %$5, 64
  %$18 = getelementptr float, float* %".1", i64 %$17
  %$19 = getelementptr float, float* %$18, i64 0
  %$20 = bitcast float* %$19 to <16 x float>*
  %$21 = getelementptr float, float* %$18, i64 16
  %$22 = bitcast float* %$21 to <16 x float>*
  %$23 = getelementptr float, float* %$18, i64 32
  %$24 = bitcast float* %$23 to <16 x float>*
  %$25 = getelementptr float, float* %$18, i64 48
  %$26 = bitcast float* %$25 to <16 x float>*
  %$27 = call <16 x float> @"llvm.masked.load.v16f32.p0"(<16 x float>* %$10, i32 4, <16 x i1> %$1, <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>)
  store <16 x float> %$27, <16 x float>* %$20, align 4
  %$28 = call <16 x float> @"llvm.masked.load.v16f32.p0"(<16 x float>* %$12, i32 4, <16 x i1> %$2, <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>)
  store <16 x float> %$28, <16 x float>* %$22, align 4
  %$29 = call <16 x float> @"llvm.masked.load.v16f32.p0"(<16 x float>* %$14, i32 4, <16 x i1> %$3, <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>)
  store <16 x float> %$29, <16 x float>* %$24, align 4
  %$30 = call <16 x float> @"llvm.masked.load.v16f32.p0"(<16 x float>* %$16, i32 4, <16 x i1> %$4, <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>)
  store <16 x float> %$30, <16 x float>* %$26, align 4
  %$31 = add nsw i64 %$5, 1
  store i64 %$31, i64* %".10"
  br label %"head"
end:
  ret void
}

declare <16 x float> @"llvm.masked.load.v16f32.p0"(<16 x float>* %".1", i32 %".2", <16 x i1> %".3", <16 x float> %".4")

define internal void @"prefetch_rows"(float* noalias %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") noinline
{
.7:
  %".10" = alloca i64
  %".9" = alloca i64
  %".8" = alloca i64
  %$1 = icmp eq i64 %".3", 1
  br i1 %$1, label %".7.if", label %".7.else"
.7.if:
  store i64 0, i64* %".8"
  br label %"head"
.7.else:
  store i64 0, i64* %".10"
  br label %"head.2"
.7.endif:
  ret void
head:
  %$2 = load i64, i64* %".8"
  %$3 = icmp slt i64 %$2, %".5"
  br i1 %$3, label %"body", label %"end"
body:
  store i64 0, i64* %".9"
  br label %"head.1"
end:
  br label %".7.endif"
head.1:
  %$4 = load i64, i64* %".9"
  %$5 = icmp slt i64 %$4, %".4"
  br i1 %$5, label %"body.1", label %"end.1"
body.1:
  %$6 = mul i64 %$2, %".2"
  %$7 = getelementptr float, float* %".1", i64 %$6
  %$8 = getelementptr float, float* %$7, i64 %$4
  %$9 = bitcast float* %$8 to i8*
  call void @"llvm.prefetch.p0"(i8* %$9, i32 0, i32 3, i32 1)
  %$10 = add nsw i64 %$4, 16
  store i64 %$10, i64* %".9"
  br label %"head.1"
end.1:
  %$11 = add nsw i64 %$2, 1
  store i64 %$11, i64* %".8"
  br label %"head"
head.2:
  %$12 = load i64, i64* %".10"
  %$13 = icmp slt i64 %$12, %".4"
  br i1 %$13, label %"body.2", label %"end.2"
body.2:
  %$14 = mul i64 %$12, %".3"
  %$15 = getelementptr float, float* %".1", i64 %$14
  %$16 = bitcast float* %$15 to i8*
  call void @"llvm.prefetch.p0"(i8* %$16, i32 0, i32 3, i32 1)
  %$17 = add nsw i64 %$12, 1
  store i64 %$17, i64* %".10"
  br label %"head.2"
end.2:
  br label %".7.endif"
}

declare void @"llvm.prefetch.p0"(i8* %".1", i32 %".2", i32 %".3", i32 %".4")

define internal void @"copy_rows"(float* noalias %".1", i64 %".2", float* noalias %".3", i64 %".4", i64 %".5", i64 %".6") noinline
{
.8:
  %".10" = alloca i64
  %".9" = alloca i64
  store i64 0, i64* %".9"
  br label %"head"
head:
  %$1 = load i64, i64* %".9"
  %$2 = icmp slt i64 %$1, %".6"
  br i1 %$2, label %"body", label %"end"
body:
  store i64 0, i64* %".10"
  br label %"head.1"
end:
  ret void
head.1:
  %$3 = load i64, i64* %".10"
  %$4 = icmp slt i64 %$3, %".5"
  br i1 %$4, label %"body.1", label %"end.1"
body.1:
  %$5 = mul i64 %$1, %".4"
  %$6 = getelementptr float, float* %".3", i64 %$5
  %$7 = getelementptr float, float* %$6, i64 %$3
  %$8 = load float, float* %$7, align 4
  %$9 = mul i64 %$1, %".2"
  %$10 = getelementptr float, float* %".1", i64 %$9
  %$11 = getelementptr float, float* %$10, i64 %$3
  store float %$8, float* %$11, align 4
  %$12 = add nsw i64 %$3, 1
  store i64 %$12, i64* %".10"
  br label %"head.1"
end.1:
  %$13 = add nsw i64 %$1, 1
  store i64 %$13, i64* %".9"
  br label %"head"
}

define internal void @"tile"(float* noalias %".1", i64 %".2", float* noalias %".3", i64 %".4", i64 %".5", float* noalias %".6", i64 %".7", i64 %".8", i64 %".9") noinline
{
.11:
  %".91" = alloca i64
  %".90" = alloca <16 x float>
  %".89" = alloca <16 x float>
  %".88" = alloca <16 x float>
  %".87" = alloca <16 x float>
  %".82" = alloca i64
  %".81" = alloca <16 x float>
  %".80" = alloca <16 x float>
  %".79" = alloca <16 x float>
  %".78" = alloca <16 x float>
  %".77" = alloca <16 x float>
  %".76" = alloca <16 x float>
  %".75" = alloca <16 x float>
  %".74" = alloca <16 x float>
  %".65" = alloca i64
  %".64" = alloca <16 x float>
  %".63" = alloca <16 x float>
  %".62" = alloca <16 x float>
  %".61" = alloca <16 x float>
  %".60" = alloca <16 x float>
  %".59" = alloca <16 x float>
  %".58" = alloca <16 x float>
  %".57" = alloca <16 x float>
  %".56" = alloca <16 x float>
  %".55" = alloca <16 x float>
  %".54" = alloca <16 x float>
  %".53" = alloca <16 x float>
  %".52" = alloca <16 x float>
  %".51" = alloca <16 x float>
  %".50" = alloca <16 x float>
  %".49" = alloca <16 x float>
  %".36" = alloca i64
  %".35" = alloca <16 x float>
  %".34" = alloca <16 x float>
  %".33" = alloca <16 x float>
  %".32" = alloca <16 x float>
  %".31" = alloca <16 x float>
  %".30" = alloca <16 x float>
  %".29" = alloca <16 x float>
  %".28" = alloca <16 x float>
  %".27" = alloca <16 x float>
  %".26" = alloca <16 x float>
  %".25" = alloca <16 x float>
  %".24" = alloca <16 x float>
  %".23" = alloca <16 x float>
  %".22" = alloca <16 x float>
  %".21" = alloca <16 x float>
  %".20" = alloca <16 x float>
  %".19" = alloca <16 x float>
  %".18" = alloca <16 x float>
  %".17" = alloca <16 x float>
  %".16" = alloca <16 x float>
  %".15" = alloca <16 x float>
  %".14" = alloca <16 x float>
  %".13" = alloca <16 x float>
  %".12" = alloca <16 x float>
  %$1 = icmp eq i64 %".9", 6
  br i1 %$1, label %".11.if", label %".11.endif"
.11.if:
  %$2 = mul i64 0, %".2"
  %$3 = getelementptr float, float* %".1", i64 %$2
  %$4 = getelementptr float, float* %$3, i64 0
  %$5 = bitcast float* %$4 to <16 x float>*
  %$6 = getelementptr float, float* %$3, i64 16
  %$7 = bitcast float* %$6 to <16 x float>*
  %$8 = getelementptr float, float* %$3, i64 32
  %$9 = bitcast float* %$8 to <16 x float>*
  %$10 = getelementptr float, float* %$3, i64 48
  %$11 = bitcast float* %$10 to <16 x float>*
  %$12 = mul i64 1, %".2"
  %$13 = getelementptr float, float* %".1", i64 %$12
  %$14 = getelementptr float, float* %$13, i64 0
  %$15 = bitcast float* %$14 to <16 x float>*
  %$16 = getelementptr float, float* %$13, i64 16
  %$17 = bitcast float* %$16 to <16 x float>*
  %$18 = getelementptr float, float* %$13, i64 32
  %$19 = bitcast float* %$18 to <16 x float>*
  %$20 = getelementptr float, float* %$13, i64 48
  %$21 = bitcast float* %$20 to <16 x float>*
  %$22 = mul i64 2, %".2"
  %$23 = getelementptr float, float* %".1", i64 %$22
  %$24 = getelementptr float, float* %$23, i64 0
  %$25 = bitcast float* %$24 to <16 x float>*
  %$26 = getelementptr float, float* %$23, i64 16
  %$27 = bitcast float* %$26 to <16 x float>*
  %$28 = getelementptr float, float* %$23, i64 32
  %$29 = bitcast float* %$28 to <16 x float>*
  %$30 = getelementptr float, float* %$23, i64 48
  %$31 = bitcast float* %$30 to <16 x float>*
  %$32 = mul i64 3, %".2"
  %$33 = getelementptr float, float* %".1", i64 %$32
  %$34 = getelementptr float, float* %$33, i64 0
  %$35 = bitcast float* %$34 to <16 x float>*
  %$36 = getelementptr float, float* %$33, i64 16
  %$37 = bitcast float* %$36 to <16 x float>*
  %$38 = getelementptr float, float* %$33, i64 32
  %$39 = bitcast float* %$38 to <16 x float>*
  %$40 = getelementptr float, float* %$33, i64 48
  %$41 = bitcast float* %$40 to <16 x float>*
  %$42 = mul i64 4, %".2"
  %$43 = getelementptr float, float* %".1", i64 %$42
  %$44 = getelementptr float, float* %$43, i64 0
  %$45 = bitcast float* %$44 to <16 x float>*
  %$46 = getelementptr float, float* %$43, i64 16
  %$47 = bitcast float* %$46 to <16 x float>*
  %$48 = getelementptr float, float* %$43, i64 32
  %$49 = bitcast float* %$48 to <16 x float>*
  %$50 = getelementptr float, float* %$43, i64 48
  %$51 = bitcast float* %$50 to <16 x float>*
  %$52 = mul i64 5, %".2"
  %$53 = getelementptr float, float* %".1", i64 %$52
  %$54 = getelementptr float, float* %$53, i64 0
  %$55 = bitcast float* %$54 to <16 x float>*
  %$56 = getelementptr float, float* %$53, i64 16
  %$57 = bitcast float* %$56 to <16 x float>*
  %$58 = getelementptr float, float* %$53, i64 32
  %$59 = bitcast float* %$58 to <16 x float>*
  %$60 = getelementptr float, float* %$53, i64 48
  %$61 = bitcast float* %$60 to <16 x float>*
  %$62 = getelementptr <16 x float>, <16 x float>* %$11, i32 1
  %$63 = bitcast <16 x float>* %$5 to i8*
  call void @"llvm.prefetch.p0"(i8* %$63, i32 1, i32 3, i32 1)
  %$64 = bitcast <16 x float>* %$7 to i8*
  call void @"llvm.prefetch.p0"(i8* %$64, i32 1, i32 3, i32 1)
  %$65 = bitcast <16 x float>* %$9 to i8*
  call void @"llvm.prefetch.p0"(i8* %$65, i32 1, i32 3, i32 1)
  %$66 = bitcast <16 x float>* %$11 to i8*
  call void @"llvm.prefetch.p0"(i8* %$66, i32 1, i32 3, i32 1)
  %$67 = bitcast <16 x float>* %$62 to i8*
  call void @"llvm.prefetch.p0"(i8* %$67, i32 1, i32 3, i32 1)
  %$68 = getelementptr <16 x float>, <16 x float>* %$21, i32 1
  %$69 = bitcast <16 x float>* %$15 to i8*
  call void @"llvm.prefetch.p0"(i8* %$69, i32 1, i32 3, i32 1)
  %$70 = bitcast <16 x float>* %$17 to i8*
  call void @"llvm.prefetch.p0"(i8* %$70, i32 1, i32 3, i32 1)
  %$71 = bitcast <16 x float>* %$19 to i8*
  call void @"llvm.prefetch.p0"(i8* %$71, i32 1, i32 3, i32 1)
  %$72 = bitcast <16 x float>* %$21 to i8*
  call void @"llvm.prefetch.p0"(i8* %$72, i32 1, i32 3, i32 1)
  %$73 = bitcast <16 x float>* %$68 to i8*
  call void @"llvm.prefetch.p0"(i8* %$73, i32 1, i32 3, i32 1)
  %$74 = getelementptr <16 x float>, <16 x float>* %$31, i32 1
  %$75 = bitcast <16 x float>* %$25 to i8*
  call void @"llvm.prefetch.p0"(i8* %$75, i32 1, i32 3, i32 1)
  %$76 = bitcast <16 x float>* %$27 to i8*
  call void @"llvm.prefetch.p0"(i8* %$76, i32 1, i32 3, i32 1)
  %$77 = bitcast <16 x float>* %$29 to i8*
  call void @"llvm.prefetch.p0"(i8* %$77, i32 1, i32 3, i32 1)
  %$78 = bitcast <16 x float>* %$31 to i8*
  call void @"llvm.prefetch.p0"(i8* %$78, i32 1, i32 3, i32 1)
  %$79 = bitcast <16 x float>* %$74 to i8*
  call void @"llvm.prefetch.p0"(i8* %$79, i32 1, i32 3, i32 1)
  %$80 = getelementptr <16 x float>, <16 x float>* %$41, i32 1
  %$81 = bitcast <16 x float>* %$35 to i8*
  call void @"llvm.prefetch.p0"(i8* %$81, i32 1, i32 3, i32 1)
  %$82 = bitcast <16 x float>* %$37 to i8*
  call void @"llvm.prefetch.p0"(i8* %$82, i32 1, i32 3, i32 1)
  %$83 = bitcast <16 x float>* %$39 to i8*
  call void @"llvm.prefetch.p0"(i8* %$83, i32 1, i32 3, i32 1)
  %$84 = bitcast <16 x float>* %$41 to i8*
  call void @"llvm.prefetch.p0"(i8* %$84, i32 1, i32 3, i32 1)
  %$85 = bitcast <16 x float>* %$80 to i8*
  call void @"llvm.prefetch.p0"(i8* %$85, i32 1, i32 3, i32 1)
  %$86 = getelementptr <16 x float>, <16 x float>* %$51, i32 1
  %$87 = bitcast <16 x float>* %$45 to i8*
  call void @"llvm.prefetch.p0"(i8* %$87, i32 1, i32 3, i32 1)
  %$88 = bitcast <16 x float>* %$47 to i8*
  call void @"llvm.prefetch.p0"(i8* %$88, i32 1, i32 3, i32 1)
  %$89 = bitcast <16 x float>* %$49 to i8*
  call void @"llvm.prefetch.p0"(i8* %$89, i32 1, i32 3, i32 1)
  %$90 = bitcast <16 x float>* %$51 to i8*
  call void @"llvm.prefetch.p0"(i8* %$90, i32 1, i32 3, i32 1)
  %$91 = bitcast <16 x float>* %$86 to i8*
  call void @"llvm.prefetch.p0"(i8* %$91, i32 1, i32 3, i32 1)
  %$92 = getelementptr <16 x float>, <16 x float>* %$61, i32 1
  %$93 = bitcast <16 x float>* %$55 to i8*
  call void @"llvm.prefetch.p0"(i8* %$93, i32 1, i32 3, i32 1)
  %$94 = bitcast <16 x float>* %$57 to i8*
  call void @"llvm.prefetch.p0"(i8* %$94, i32 1, i32 3, i32 1)
  %$95 = bitcast <16 x float>* %$59 to i8*
  call void @"llvm.prefetch.p0"(i8* %$95, i32 1, i32 3, i32 1)
  %$96 = bitcast <16 x float>* %$61 to i8*
  call void @"llvm.prefetch.p0"(i8* %$96, i32 1, i32 3, i32 1)
  %$97 = bitcast <16 x float>* %$92 to i8*
  call void @"llvm.prefetch.p0"(i8* %$97, i32 1, i32 3, i32 1)
  %$98 = mul i64 0, %".4"
  %$99 = getelementptr float, float* %".3", i64 %$98
  %$100 = mul i64 1, %".4"
  %$101 = getelementptr float, float* %".3", i64 %$100
  %$102 = mul i64 2, %".4"
  %$103 = getelementptr float, float* %".3", i64 %$102
  %$104 = mul i64 3, %".4"
  %$105 = getelementptr float, float* %".3", i64 %$104
  %$106 = mul i64 4, %".4"
  %$107 = getelementptr float, float* %".3", i64 %$106
  %$108 = mul i64 5, %".4"
  %$109 = getelementptr float, float* %".3", i64 %$108
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".12"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".13"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".14"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".15"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".16"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".17"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".18"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".19"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".20"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".21"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".22"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".23"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".24"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".25"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".26"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".27"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".28"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".29"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".30"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".31"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".32"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".33"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".34"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".35"
  store i64 0, i64* %".36"
  br label %"head"
.11.endif:
  %$290 = icmp eq i64 %".9", 4
  br i1 %$290, label %".11.endif.if", label %".11.endif.endif"
head:
  %$110 = load i64, i64* %".36"
  %$111 = icmp slt i64 %$110, %".7"
  br i1 %$111, label %"body", label %"end"
body:
  %$112 = mul i64 %$110, 64
  %$113 = getelementptr float, float* %".6", i64 %$112
  %$114 = getelementptr float, float* %$113, i64 0
  %$115 = bitcast float* %$114 to <16 x float>*
  %$116 = getelementptr float, float* %$113, i64 16
  %$117 = bitcast float* %$116 to <16 x float>*
  %$118 = getelementptr float, float* %$113, i64 32
  %$119 = bitcast float* %$118 to <16 x float>*
  %$120 = getelementptr float, float* %$113, i64 48
  %$121 = bitcast float* %$120 to <16 x float>*
  %$122 = load <16 x float>, <16 x float>* %$115, align 64
  %$123 = load <16 x float>, <16 x float>* %$117, align 64
  %$124 = load <16 x float>, <16 x float>* %$119, align 64
  %$125 = load <16 x float>, <16 x float>* %$121, align 64
  %$126 = mul i64 %$110, %".5"
  %$127 = getelementptr float, float* %$99, i64 %$126
  %$128 = load float, float* %$127, align 4
  %".37" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$128, i32 0
  %".38" = shufflevector <16 x float> %".37", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$129 = load <16 x float>, <16 x float>* %".12"
  %$130 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".38", <16 x float> %$122, <16 x float> %$129)
  store <16 x float> %$130, <16 x float>* %".12"
  %$131 = load <16 x float>, <16 x float>* %".13"
  %$132 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".38", <16 x float> %$123, <16 x float> %$131)
  store <16 x float> %$132, <16 x float>* %".13"
  %$133 = load <16 x float>, <16 x float>* %".14"
  %$134 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".38", <16 x float> %$124, <16 x float> %$133)
  store <16 x float> %$134, <16 x float>* %".14"
  %$135 = load <16 x float>, <16 x float>* %".15"
  %$136 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".38", <16 x float> %$125, <16 x float> %$135)
  store <16 x float> %$136, <16 x float>* %".15"
  %$137 = mul i64 %$110, %".5"
  %$138 = getelementptr float, float* %$101, i64 %$137
  %$139 = load float, float* %$138, align 4
  %".39" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$139, i32 0
  %".40" = shufflevector <16 x float> %".39", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$140 = load <16 x float>, <16 x float>* %".16"
  %$141 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".40", <16 x float> %$122, <16 x float> %$140)
  store <16 x float> %$141, <16 x float>* %".16"
  %$142 = load <16 x float>, <16 x float>* %".17"
  %$143 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".40", <16 x float> %$123, <16 x float> %$142)
  store <16 x float> %$143, <16 x float>* %".17"
  %$144 = load <16 x float>, <16 x float>* %".18"
  %$145 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".40", <16 x float> %$124, <16 x float> %$144)
  store <16 x float> %$145, <16 x float>* %".18"
  %$146 = load <16 x float>, <16 x float>* %".19"
  %$147 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".40", <16 x float> %$125, <16 x float> %$146)
  store <16 x float> %$147, <16 x float>* %".19"
  %$148 = mul i64 %$110, %".5"
  %$149 = getelementptr float, float* %$103, i64 %$148
  %$150 = load float, float* %$149, align 4
  %".41" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$150, i32 0
  %".42" = shufflevector <16 x float> %".41", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$151 = load <16 x float>, <16 x float>* %".20"
  %$152 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".42", <16 x float> %$122, <16 x float> %$151)
  store <16 x float> %$152, <16 x float>* %".20"
  %$153 = load <16 x float>, <16 x float>* %".21"
  %$154 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".42", <16 x float> %$123, <16 x float> %$153)
  store <16 x float> %$154, <16 x float>* %".21"
  %$155 = load <16 x float>, <16 x float>* %".22"
  %$156 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".42", <16 x float> %$124, <16 x float> %$155)
  store <16 x float> %$156, <16 x float>* %".22"
  %$157 = load <16 x float>, <16 x float>* %".23"
  %$158 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".42", <16 x float> %$125, <16 x float> %$157)
  store <16 x float> %$158, <16 x float>* %".23"
  %$159 = mul i64 %$110, %".5"
  %$160 = getelementptr float, float* %$105, i64 %$159
  %$161 = load float, float* %$160, align 4
  %".43" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$161, i32 0
  %".44" = shufflevector <16 x float> %".43", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$162 = load <16 x float>, <16 x float>* %".24"
  %$163 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".44", <16 x float> %$122, <16 x float> %$162)
  store <16 x float> %$163, <16 x float>* %".24"
  %$164 = load <16 x float>, <16 x float>* %".25"
  %$165 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".44", <16 x float> %$123, <16 x float> %$164)
  store <16 x float> %$165, <16 x float>* %".25"
  %$166 = load <16 x float>, <16 x float>* %".26"
  %$167 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".44", <16 x float> %$124, <16 x float> %$166)
  store <16 x float> %$167, <16 x float>* %".26"
  %$168 = load <16 x float>, <16 x float>* %".27"
  %$169 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".44", <16 x float> %$125, <16 x float> %$168)
  store <16 x float> %$169, <16 x float>* %".27"
  %$170 = mul i64 %$110, %".5"
  %$171 = getelementptr float, float* %$107, i64 %$170
  %$172 = load float, float* %$171, align 4
  %".45" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$172, i32 0
  %".46" = shufflevector <16 x float> %".45", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$173 = load <16 x float>, <16 x float>* %".28"
  %$174 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".46", <16 x float> %$122, <16 x float> %$173)
  store <16 x float> %$174, <16 x float>* %".28"
  %$175 = load <16 x float>, <16 x float>* %".29"
  %$176 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".46", <16 x float> %$123, <16 x float> %$175)
  store <16 x float> %$176, <16 x float>* %".29"
  %$177 = load <16 x float>, <16 x float>* %".30"
  %$178 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".46", <16 x float> %$124, <16 x float> %$177)
  store <16 x float> %$178, <16 x float>* %".30"
  %$179 = load <16 x float>, <16 x float>* %".31"
  %$180 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".46", <16 x float> %$125, <16 x float> %$179)
  store <16 x float> %$180, <16 x float>* %".31"
  %$181 = mul i64 %$110, %".5"
  %$182 = getelementptr float, float* %$109, i64 %$181
  %$183 = load float, float* %$182, align 4
  %".47" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$183, i32 0
  %".48" = shufflevector <16 x float> %".47", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$184 = load <16 x float>, <16 x float>* %".32"
  %$185 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".48", <16 x float> %$122, <16 x float> %$184)
  store <16 x float> %$185, <16 x float>* %".32"
  %$186 = load <16 x float>, <16 x float>* %".33"
  %$187 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".48", <16 x float> %$123, <16 x float> %$186)
  store <16 x float> %$187, <16 x float>* %".33"
  %$188 = load <16 x float>, <16 x float>* %".34"
  %$189 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".48", <16 x float> %$124, <16 x float> %$188)
  store <16 x float> %$189, <16 x float>* %".34"
  %$190 = load <16 x float>, <16 x float>* %".35"
  %$191 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".48", <16 x float> %$125, <16 x float> %$190)
  store <16 x float> %$191, <16 x float>* %".35"
  %$192 = add nsw i64 %$110, 1
  store i64 %$192, i64* %".36"
  br label %"head"
end:
  %$193 = icmp ne i64 %".8", 0
  br i1 %$193, label %"end.if", label %"end.endif"
end.if:
  %$194 = load <16 x float>, <16 x float>* %$5, align 4
  %$195 = load <16 x float>, <16 x float>* %".12"
  %$196 = fadd <16 x float> %$194, %$195
  store <16 x float> %$196, <16 x float>* %".12"
  %$197 = load <16 x float>, <16 x float>* %$7, align 4
  %$198 = load <16 x float>, <16 x float>* %".13"
  %$199 = fadd <16 x float> %$197, %$198
  store <16 x float> %$199, <16 x float>* %".13"
  %$200 = load <16 x float>, <16 x float>* %$9, align 4
  %$201 = load <16 x float>, <16 x float>* %".14"
  %$202 = fadd <16 x float> %$200, %$201
  store <16 x float> %$202, <16 x float>* %".14"
  %$203 = load <16 x float>, <16 x float>* %$11, align 4
  %$204 = load <16 x float>, <16 x float>* %".15"
  %$205 = fadd <16 x float> %$203, %$204
  store <16 x float> %$205, <16 x float>* %".15"
  %$206 = load <16 x float>, <16 x float>* %$15, align 4
  %$207 = load <16 x float>, <16 x float>* %".16"
  %$208 = fadd <16 x float> %$206, %$207
  store <16 x float> %$208, <16 x float>* %".16"
  %$209 = load <16 x float>, <16 x float>* %$17, align 4
  %$210 = load <16 x float>, <16 x float>* %".17"
  %$211 = fadd <16 x float> %$209, %$210
  store <16 x float> %$211, <16 x float>* %".17"
  %$212 = load <16 x float>, <16 x float>* %$19, align 4
  %$213 = load <16 x float>, <16 x float>* %".18"
  %$214 = fadd <16 x float> %$212, %$213
  store <16 x float> %$214, <16 x float>* %".18"
  %$215 = load <16 x float>, <16 x float>* %$21, align 4
  %$216 = load <16 x float>, <16 x float>* %".19"
  %$217 = fadd <16 x float> %$215, %$216
  store <16 x float> %$217, <16 x float>* %".19"
  %$218 = load <16 x float>, <16 x float>* %$25, align 4
  %$219 = load <16 x float>, <16 x float>* %".20"
  %$220 = fadd <16 x float> %$218, %$219
  store <16 x float> %$220, <16 x float>* %".20"
  %$221 = load <16 x float>, <16 x float>* %$27, align 4
  %$222 = load <16 x float>, <16 x float>* %".21"
  %$223 = fadd <16 x float> %$221, %$222
  store <16 x float> %$223, <16 x float>* %".21"
  %$224 = load <16 x float>, <16 x float>* %$29, align 4
  %$225 = load <16 x float>, <16 x float>* %".22"
  %$226 = fadd <16 x float> %$224, %$225
  store <16 x float> %$226, <16 x float>* %".22"
  %$227 = load <16 x float>, <16 x float>* %$31, align 4
  %$228 = load <16 x float>, <16 x float>* %".23"
  %$229 = fadd <16 x float> %$227, %$228
  store <16 x float> %$229, <16 x float>* %".23"
  %$230 = load <16 x float>, <16 x float>* %$35, align 4
  %$231 = load <16 x float>, <16 x float>* %".24"
  %$232 = fadd <16 x float> %$230, %$231
  store <16 x float> %$232, <16 x float>* %".24"
  %$233 = load <16 x float>, <16 x float>* %$37, align 4
  %$234 = load <16 x float>, <16 x float>* %".25"
  %$235 = fadd <16 x float> %$233, %$234
  store <16 x float> %$235, <16 x float>* %".25"
  %$236 = load <16 x float>, <16 x float>* %$39, align 4
  %$237 = load <16 x float>, <16 x float>* %".26"
  %$238 = fadd <16 x float> %$236, %$237
  store <16 x float> %$238, <16 x float>* %".26"
  %$239 = load <16 x float>, <16 x float>* %$41, align 4
  %$240 = load <16 x float>, <16 x float>* %".27"
  %$241 = fadd <16 x float> %$239, %$240
  store <16 x float> %$241, <16 x float>* %".27"
  %$242 = load <16 x float>, <16 x float>* %$45, align 4
  %$243 = load <16 x float>, <16 x float>* %".28"
  %$244 = fadd <16 x float> %$242, %$243
  store <16 x float> %$244, <16 x float>* %".28"
  %$245 = load <16 x float>, <16 x float>* %$47, align 4
  %$246 = load <16 x float>, <16 x float>* %".29"
  %$247 = fadd <16 x float> %$245, %$246
  store <16 x float> %$247, <16 x float>* %".29"
  %$248 = load <16 x float>, <16 x float>* %$49, align 4
  %$249 = load <16 x float>, <16 x float>* %".30"
  %$250 = fadd <16 x float> %$248, %$249
  store <16 x float> %$250, <16 x float>* %".30"
  %$251 = load <16 x float>, <16 x float>* %$51, align 4
  %$252 = load <16 x float>, <16 x float>* %".31"
  %$253 = fadd <16 x float> %$251, %$252
  store <16 x float> %$253, <16 x float>* %".31"
  %$254 = load <16 x float>, <16 x float>* %$55, align 4
  %$255 = load <16 x float>, <16 x float>* %".32"
  %$256 = fadd <16 x float> %$254, %$255
  store <16 x float> %$256, <16 x float>* %".32"
  %$257 = load <16 x float>, <16 x float>* %$57, align 4
  %$258 = load <16 x float>, <16 x float>* %".33"
  %$259 = fadd <16 x float> %$257, %$258
  store <16 x float> %$259, <16 x float>* %".33"
  %$260 = load <16 x float>, <16 x float>* %$59, align 4
  %$261 = load <16 x float>, <16 x float>* %".34"
  %$262 = fadd <16 x float> %$260, %$261
  store <16 x float> %$262, <16 x float>* %".34"
  %$263 = load <16 x float>, <16 x float>* %$61, align 4
  %$264 = load <16 x float>, <16 x float>* %".35"
  %$265 = fadd <16 x float> %$263, %$264
  store <16 x float> %$265, <16 x float>* %".35"
  br label %"end.endif"
end.endif:
  %$266 = load <16 x float>, <16 x float>* %".12"
  store <16 x float> %$266, <16 x float>* %$5, align 4
  %$267 = load <16 x float>, <16 x float>* %".13"
  store <16 x float> %$267, <16 x float>* %$7, align 4
  %$268 = load <16 x float>, <16 x float>* %".14"
  store <16 x float> %$268, <16 x float>* %$9, align 4
  %$269 = load <16 x float>, <16 x float>* %".15"
  store <16 x float> %$269, <16 x float>* %$11, align 4
  %$270 = load <16 x float>, <16 x float>* %".16"
  store <16 x float> %$270, <16 x float>* %$15, align 4
  %$271 = load <16 x float>, <16 x float>* %".17"
  store <16 x float> %$271, <16 x float>* %$17, align 4
  %$272 = load <16 x float>, <16 x float>* %".18"
  store <16 x float> %$272, <16 x float>* %$19, align 4
  %$273 = load <16 x float>, <16 x float>* %".19"
  store <16 x float> %$273, <16 x float>* %$21, align 4
  %$274 = load <16 x float>, <16 x float>* %".20"
  store <16 x float> %$274, <16 x float>* %$25, align 4
  %$275 = load <16 x float>, <16 x float>* %".21"
  store <16 x float> %$275, <16 x float>* %$27, align 4
  %$276 = load <16 x float>, <16 x float>* %".22"
  store <16 x float> %$276, <16 x float>* %$29, align 4
  %$277 = load <16 x float>, <16 x float>* %".23"
  store <16 x float> %$277, <16 x float>* %$31, align 4
  %$278 = load <16 x float>, <16 x float>* %".24"
  store <16 x float> %$278, <16 x float>* %$35, align 4
  %$279 = load <16 x float>, <16 x float>* %".25"
  store <16 x float> %$279, <16 x float>* %$37, align 4
  %$280 = load <16 x float>, <16 x float>* %".26"
  store <16 x float> %$280, <16 x float>* %$39, align 4
  %$281 = load <16 x float>, <16 x float>* %".27"
  store <16 x float> %$281, <16 x float>* %$41, align 4
  %$282 = load <16 x float>, <16 x float>* %".28"
  store <16 x float> %$282, <16 x float>* %$45, align 4
  %$283 = load <16 x float>, <16 x float>* %".29"
  store <16 x float> %$283, <16 x float>* %$47, align 4
  %$284 = load <16 x float>, <16 x float>* %".30"
  store <16 x float> %$284, <16 x float>* %$49, align 4
  %$285 = load <16 x float>, <16 x float>* %".31"
  store <16 x float> %$285, <16 x float>* %$51, align 4
  %$286 = load <16 x float>, <16 x float>* %".32"
  store <16 x float> %$286, <16 x float>* %$55, align 4
  %$287 = load <16 x float>, <16 x float>* %".33"
  store <16 x float> %$287, <16 x float>* %$57, align 4
  %$288 = load <16 x float>, <16 x float>* %".34"
  store <16 x float> %$288, <16 x float>* %$59, align 4
  %$289 = load <16 x float>, <16 x float>* %".35"
  store <16 x float> %$289, <16 x float>* %$61, align 4
  br label %".11.endif"
.11.endif.if:
  %$291 = mul i64 0, %".2"
  %$292 = getelementptr float, float* %".1", i64 %$291
  %$293 = getelementptr float, float* %$292, i64 0
  %$294 = bitcast float* %$293 to <16 x float>*
  %$295 = getelementptr float, float* %$292, i64 16
  %$296 = bitcast float* %$295 to <16 x float>*
  %$297 = getelementptr float, float* %$292, i64 32
  %$298 = bitcast float* %$297 to <16 x float>*
  %$299 = getelementptr float, float* %$292, i64 48
  %$300 = bitcast float* %$299 to <16 x float>*
  %$301 = mul i64 1, %".2"
  %$302 = getelementptr float, float* %".1", i64 %$301
  %$303 = getelementptr float, float* %$302, i64 0
  %$304 = bitcast float* %$303 to <16 x float>*
  %$305 = getelementptr float, float* %$302, i64 16
  %$306 = bitcast float* %$305 to <16 x float>*
  %$307 = getelementptr float, float* %$302, i64 32
  %$308 = bitcast float* %$307 to <16 x float>*
  %$309 = getelementptr float, float* %$302, i64 48
  %$310 = bitcast float* %$309 to <16 x float>*
  %$311 = mul i64 2, %".2"
  %$312 = getelementptr float, float* %".1", i64 %$311
  %$313 = getelementptr float, float* %$312, i64 0
  %$314 = bitcast float* %$313 to <16 x float>*
  %$315 = getelementptr float, float* %$312, i64 16
  %$316 = bitcast float* %$315 to <16 x float>*
  %$317 = getelementptr float, float* %$312, i64 32
  %$318 = bitcast float* %$317 to <16 x float>*
  %$319 = getelementptr float, float* %$312, i64 48
  %$320 = bitcast float* %$319 to <16 x float>*
  %$321 = mul i64 3, %".2"
  %$322 = getelementptr float, float* %".1", i64 %$321
  %$323 = getelementptr float, float* %$322, i64 0
  %$324 = bitcast float* %$323 to <16 x float>*
  %$325 = getelementptr float, float* %$322, i64 16
  %$326 = bitcast float* %$325 to <16 x float>*
  %$327 = getelementptr float, float* %$322, i64 32
  %$328 = bitcast float* %$327 to <16 x float>*
  %$329 = getelementptr float, float* %$322, i64 48
  %$330 = bitcast float* %$329 to <16 x float>*
  %$331 = getelementptr <16 x float>, <16 x float>* %$300, i32 1
  %$332 = bitcast <16 x float>* %$294 to i8*
  call void @"llvm.prefetch.p0"(i8* %$332, i32 1, i32 3, i32 1)
  %$333 = bitcast <16 x float>* %$296 to i8*
  call void @"llvm.prefetch.p0"(i8* %$333, i32 1, i32 3, i32 1)
  %$334 = bitcast <16 x float>* %$298 to i8*
  call void @"llvm.prefetch.p0"(i8* %$334, i32 1, i32 3, i32 1)
  %$335 = bitcast <16 x float>* %$300 to i8*
  call void @"llvm.prefetch.p0"(i8* %$335, i32 1, i32 3, i32 1)
  %$336 = bitcast <16 x float>* %$331 to i8*
  call void @"llvm.prefetch.p0"(i8* %$336, i32 1, i32 3, i32 1)
  %$337 = getelementptr <16 x float>, <16 x float>* %$310, i32 1
  %$338 = bitcast <16 x float>* %$304 to i8*
  call void @"llvm.prefetch.p0"(i8* %$338, i32 1, i32 3, i32 1)
  %$339 = bitcast <16 x float>* %$306 to i8*
  call void @"llvm.prefetch.p0"(i8* %$339, i32 1, i32 3, i32 1)
  %$340 = bitcast <16 x float>* %$308 to i8*
  call void @"llvm.prefetch.p0"(i8* %$340, i32 1, i32 3, i32 1)
  %$341 = bitcast <16 x float>* %$310 to i8*
  call void @"llvm.prefetch.p0"(i8* %$341, i32 1, i32 3, i32 1)
  %$342 = bitcast <16 x float>* %$337 to i8*
  call void @"llvm.prefetch.p0"(i8* %$342, i32 1, i32 3, i32 1)
  %$343 = getelementptr <16 x float>, <16 x float>* %$320, i32 1
  %$344 = bitcast <16 x float>* %$314 to i8*
  call void @"llvm.prefetch.p0"(i8* %$344, i32 1, i32 3, i32 1)
  %$345 = bitcast <16 x float>* %$316 to i8*
  call void @"llvm.prefetch.p0"(i8* %$345, i32 1, i32 3, i32 1)
  %$346 = bitcast <16 x float>* %$318 to i8*
  call void @"llvm.prefetch.p0"(i8* %$346, i32 1, i32 3, i32 1)
  %$347 = bitcast <16 x float>* %$320 to i8*
  call void @"llvm.prefetch.p0"(i8* %$347, i32 1, i32 3, i32 1)
  %$348 = bitcast <16 x float>* %$343 to i8*
  call void @"llvm.prefetch.p0"(i8* %$348, i32 1, i32 3, i32 1)
  %$349 = getelementptr <16 x float>, <16 x float>* %$330, i32 1
  %$350 = bitcast <16 x float>* %$324 to i8*
  call void @"llvm.prefetch.p0"(i8* %$350, i32 1, i32 3, i32 1)
  %$351 = bitcast <16 x float>* %$326 to i8*
  call void @"llvm.prefetch.p0"(i8* %$351, i32 1, i32 3, i32 1)
  %$352 = bitcast <16 x float>* %$328 to i8*
  call void @"llvm.prefetch.p0"(i8* %$352, i32 1, i32 3, i32 1)
  %$353 = bitcast <16 x float>* %$330 to i8*
  call void @"llvm.prefetch.p0"(i8* %$353, i32 1, i32 3, i32 1)
  %$354 = bitcast <16 x float>* %$349 to i8*
  call void @"llvm.prefetch.p0"(i8* %$354, i32 1, i32 3, i32 1)
  %$355 = mul i64 0, %".4"
  %$356 = getelementptr float, float* %".3", i64 %$355
  %$357 = mul i64 1, %".4"
  %$358 = getelementptr float, float* %".3", i64 %$357
  %$359 = mul i64 2, %".4"
  %$360 = getelementptr float, float* %".3", i64 %$359
  %$361 = mul i64 3, %".4"
  %$362 = getelementptr float, float* %".3", i64 %$361
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".49"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".50"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".51"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".52"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".53"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".54"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".55"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".56"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".57"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".58"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".59"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".60"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".61"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".62"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".63"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".64"
  store i64 0, i64* %".65"
  br label %"head.1"
.11.endif.endif:
  %$489 = icmp eq i64 %".9", 2
  br i1 %$489, label %".11.endif.endif.if", label %".11.endif.endif.endif"
head.1:
  %$363 = load i64, i64* %".65"
  %$364 = icmp slt i64 %$363, %".7"
  br i1 %$364, label %"body.1", label %"end.1"
body.1:
  %$365 = mul i64 %$363, 64
  %$366 = getelementptr float, float* %".6", i64 %$365
  %$367 = getelementptr float, float* %$366, i64 0
  %$368 = bitcast float* %$367 to <16 x float>*
  %$369 = getelementptr float, float* %$366, i64 16
  %$370 = bitcast float* %$369 to <16 x float>*
  %$371 = getelementptr float, float* %$366, i64 32
  %$372 = bitcast float* %$371 to <16 x float>*
  %$373 = getelementptr float, float* %$366, i64 48
  %$374 = bitcast float* %$373 to <16 x float>*
  %$375 = load <16 x float>, <16 x float>* %$368, align 64
  %$376 = load <16 x float>, <16 x float>* %$370, align 64
  %$377 = load <16 x float>, <16 x float>* %$372, align 64
  %$378 = load <16 x float>, <16 x float>* %$374, align 64
  %$379 = mul i64 %$363, %".5"
  %$380 = getelementptr float, float* %$356, i64 %$379
  %$381 = load float, float* %$380, align 4
  %".66" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$381, i32 0
  %".67" = shufflevector <16 x float> %".66", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$382 = load <16 x float>, <16 x float>* %".49"
  %$383 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".67", <16 x float> %$375, <16 x float> %$382)
  store <16 x float> %$383, <16 x float>* %".49"
  %$384 = load <16 x float>, <16 x float>* %".50"
  %$385 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".67", <16 x float> %$376, <16 x float> %$384)
  store <16 x float> %$385, <16 x float>* %".50"
  %$386 = load <16 x float>, <16 x float>* %".51"
  %$387 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".67", <16 x float> %$377, <16 x float> %$386)
  store <16 x float> %$387, <16 x float>* %".51"
  %$388 = load <16 x float>, <16 x float>* %".52"
  %$389 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".67", <16 x float> %$378, <16 x float> %$388)
  store <16 x float> %$389, <16 x float>* %".52"
  %$390 = mul i64 %$363, %".5"
  %$391 = getelementptr float, float* %$358, i64 %$390
  %$392 = load float, float* %$391, align 4
  %".68" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$392, i32 0
  %".69" = shufflevector <16 x float> %".68", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$393 = load <16 x float>, <16 x float>* %".53"
  %$394 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".69", <16 x float> %$375, <16 x float> %$393)
  store <16 x float> %$394, <16 x float>* %".53"
  %$395 = load <16 x float>, <16 x float>* %".54"
  %$396 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".69", <16 x float> %$376, <16 x float> %$395)
  store <16 x float> %$396, <16 x float>* %".54"
  %$397 = load <16 x float>, <16 x float>* %".55"
  %$398 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".69", <16 x float> %$377, <16 x float> %$397)
  store <16 x float> %$398, <16 x float>* %".55"
  %$399 = load <16 x float>, <16 x float>* %".56"
  %$400 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".69", <16 x float> %$378, <16 x float> %$399)
  store <16 x float> %$400, <16 x float>* %".56"
  %$401 = mul i64 %$363, %".5"
  %$402 = getelementptr float, float* %$360, i64 %$401
  %$403 = load float, float* %$402, align 4
  %".70" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$403, i32 0
  %".71" = shufflevector <16 x float> %".70", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$404 = load <16 x float>, <16 x float>* %".57"
  %$405 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".71", <16 x float> %$375, <16 x float> %$404)
  store <16 x float> %$405, <16 x float>* %".57"
  %$406 = load <16 x float>, <16 x float>* %".58"
  %$407 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".71", <16 x float> %$376, <16 x float> %$406)
  store <16 x float> %$407, <16 x float>* %".58"
  %$408 = load <16 x float>, <16 x float>* %".59"
  %$409 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".71", <16 x float> %$377, <16 x float> %$408)
  store <16 x float> %$409, <16 x float>* %".59"
  %$410 = load <16 x float>, <16 x float>* %".60"
  %$411 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".71", <16 x float> %$378, <16 x float> %$410)
  store <16 x float> %$411, <16 x float>* %".60"
  %$412 = mul i64 %$363, %".5"
  %$413 = getelementptr float, float* %$362, i64 %$412
  %$414 = load float, float* %$413, align 4
  %".72" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$414, i32 0
  %".73" = shufflevector <16 x float> %".72", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$415 = load <16 x float>, <16 x float>* %".61"
  %$416 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".73", <16 x float> %$375, <16 x float> %$415)
  store <16 x float> %$416, <16 x float>* %".61"
  %$417 = load <16 x float>, <16 x float>* %".62"
  %$418 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".73", <16 x float> %$376, <16 x float> %$417)
  store <16 x float> %$418, <16 x float>* %".62"
  %$419 = load <16 x float>, <16 x float>* %".63"
  %$420 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".73", <16 x float> %$377, <16 x float> %$419)
  store <16 x float> %$420, <16 x float>* %".63"
  %$421 = load <16 x float>, <16 x float>* %".64"
  %$422 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".73", <16 x float> %$378, <16 x float> %$421)
  store <16 x float> %$422, <16 x float>* %".64"
  %$423 = add nsw i64 %$363, 1
  store i64 %$423, i64* %".65"
  br label %"head.1"
end.1:
  %$424 = icmp ne i64 %".8", 0
  br i1 %$424, label %"end.1.if", label %"end.1.endif"
end.1.if:
  %$425 = load <16 x float>, <16 x float>* %$294, align 4
  %$426 = load <16 x float>, <16 x float>* %".49"
  %$427 = fadd <16 x float> %$425, %$426
  store <16 x float> %$427, <16 x float>* %".49"
  %$428 = load <16 x float>, <16 x float>* %$296, align 4
  %$429 = load <16 x float>, <16 x float>* %".50"
  %$430 = fadd <16 x float> %$428, %$429
  store <16 x float> %$430, <16 x float>* %".50"
  %$431 = load <16 x float>, <16 x float>* %$298, align 4
  %$432 = load <16 x float>, <16 x float>* %".51"
  %$433 = fadd <16 x float> %$431, %$432
  store <16 x float> %$433, <16 x float>* %".51"
  %$434 = load <16 x float>, <16 x float>* %$300, align 4
  %$435 = load <16 x float>, <16 x float>* %".52"
  %$436 = fadd <16 x float> %$434, %$435
  store <16 x float> %$436, <16 x float>* %".52"
  %$437 = load <16 x float>, <16 x float>* %$304, align 4
  %$438 = load <16 x float>, <16 x float>* %".53"
  %$439 = fadd <16 x float> %$437, %$438
  store <16 x float> %$439, <16 x float>* %".53"
  %$440 = load <16 x float>, <16 x float>* %$306, align 4
  %$441 = load <16 x float>, <16 x float>* %".54"
  %$442 = fadd <16 x float> %$440, %$441
  store <16 x float> %$442, <16 x float>* %".54"
  %$443 = load <16 x float>, <16 x float>* %$308, align 4
  %$444 = load <16 x float>, <16 x float>* %".55"
  %$445 = fadd <16 x float> %$443, %$444
  store <16 x float> %$445, <16 x float>* %".55"
  %$446 = load <16 x float>, <16 x float>* %$310, align 4
  %$447 = load <16 x float>, <16 x float>* %".56"
  %$448 = fadd <16 x float> %$446, %$447
  store <16 x float> %$448, <16 x float>* %".56"
  %$449 = load <16 x float>, <16 x float>* %$314, align 4
  %$450 = load <16 x float>, <16 x float>* %".57"
  %$451 = fadd <16 x float> %$449, %$450
  store <16 x float> %$451, <16 x float>* %".57"
  %$452 = load <16 x float>, <16 x float>* %$316, align 4
  %$453 = load <16 x float>, <16 x float>* %".58"
  %$454 = fadd <16 x float> %$452, %$453
  store <16 x float> %$454, <16 x float>* %".58"
  %$455 = load <16 x float>, <16 x float>* %$318, align 4
  %$456 = load <16 x float>, <16 x float>* %".59"
  %$457 = fadd <16 x float> %$455, %$456
  store <16 x float> %$457, <16 x float>* %".59"
  %$458 = load <16 x float>, <16 x float>* %$320, align 4
  %$459 = load <16 x float>, <16 x float>* %".60"
  %$460 = fadd <16 x float> %$458, %$459
  store <16 x float> %$460, <16 x float>* %".60"
  %$461 = load <16 x float>, <16 x float>* %$324, align 4
  %$462 = load <16 x float>, <16 x float>* %".61"
  %$463 = fadd <16 x float> %$461, %$462
  store <16 x float> %$463, <16 x float>* %".61"
  %$464 = load <16 x float>, <16 x float>* %$326, align 4
  %$465 = load <16 x float>, <16 x float>* %".62"
  %$466 = fadd <16 x float> %$464, %$465
  store <16 x float> %$466, <16 x float>* %".62"
  %$467 = load <16 x float>, <16 x float>* %$328, align 4
  %$468 = load <16 x float>, <16 x float>* %".63"
  %$469 = fadd <16 x float> %$467, %$468
  store <16 x float> %$469, <16 x float>* %".63"
  %$470 = load <16 x float>, <16 x float>* %$330, align 4
  %$471 = load <16 x float>, <16 x float>* %".64"
  %$472 = fadd <16 x float> %$470, %$471
  store <16 x float> %$472, <16 x float>* %".64"
  br label %"end.1.endif"
end.1.endif:
  %$473 = load <16 x float>, <16 x float>* %".49"
  store <16 x float> %$473, <16 x float>* %$294, align 4
  %$474 = load <16 x float>, <16 x float>* %".50"
  store <16 x float> %$474, <16 x float>* %$296, align 4
  %$475 = load <16 x float>, <16 x float>* %".51"
  store <16 x float> %$475, <16 x float>* %$298, align 4
  %$476 = load <16 x float>, <16 x float>* %".52"
  store <16 x float> %$476, <16 x float>* %$300, align 4
  %$477 = load <16 x float>, <16 x float>* %".53"
  store <16 x float> %$477, <16 x float>* %$304, align 4
  %$478 = load <16 x float>, <16 x float>* %".54"
  store <16 x float> %$478, <16 x float>* %$306, align 4
  %$479 = load <16 x float>, <16 x float>* %".55"
  store <16 x float> %$479, <16 x float>* %$308, align 4
  %$480 = load <16 x float>, <16 x float>* %".56"
  store <16 x float> %$480, <16 x float>* %$310, align 4
  %$481 = load <16 x float>, <16 x float>* %".57"
  store <16 x float> %$481, <16 x float>* %$314, align 4
  %$482 = load <16 x float>, <16 x float>* %".58"
  store <16 x float> %$482, <16 x float>* %$316, align 4
  %$483 = load <16 x float>, <16 x float>* %".59"
  store <16 x float> %$483, <16 x float>* %$318, align 4
  %$484 = load <16 x float>, <16 x float>* %".60"
  store <16 x float> %$484, <16 x float>* %$320, align 4
  %$485 = load <16 x float>, <16 x float>* %".61"
  store <16 x float> %$485, <16 x float>* %$324, align 4
  %$486 = load <16 x float>, <16 x float>* %".62"
  store <16 x float> %$486, <16 x float>* %$326, align 4
  %$487 = load <16 x float>, <16 x float>* %".63"
  store <16 x float> %$487, <16 x float>* %$328, align 4
  %$488 = load <16 x float>, <16 x float>* %".64"
  store <16 x float> %$488, <16 x float>* %$330, align 4
  br label %".11.endif.endif"
.11.endif.endif.if:
  %$490 = mul i64 0, %".2"
  %$491 = getelementptr float, float* %".1", i64 %$490
  %$492 = getelementptr float, float* %$491, i64 0
  %$493 = bitcast float* %$492 to <16 x float>*
  %$494 = getelementptr float, float* %$491, i64 16
  %$495 = bitcast float* %$494 to <16 x float>*
  %$496 = getelementptr float, float* %$491, i64 32
  %$497 = bitcast float* %$496 to <16 x float>*
  %$498 = getelementptr float, float* %$491, i64 48
  %$499 = bitcast float* %$498 to <16 x float>*
  %$500 = mul i64 1, %".2"
  %$501 = getelementptr float, float* %".1", i64 %$500
  %$502 = getelementptr float, float* %$501, i64 0
  %$503 = bitcast float* %$502 to <16 x float>*
  %$504 = getelementptr float, float* %$501, i64 16
  %$505 = bitcast float* %$504 to <16 x float>*
  %$506 = getelementptr float, float* %$501, i64 32
  %$507 = bitcast float* %$506 to <16 x float>*
  %$508 = getelementptr float, float* %$501, i64 48
  %$509 = bitcast float* %$508 to <16 x float>*
  %$510 = getelementptr <16 x float>, <16 x float>* %$499, i32 1
  %$511 = bitcast <16 x float>* %$493 to i8*
  call void @"llvm.prefetch.p0"(i8* %$511, i32 1, i32 3, i32 1)
  %$512 = bitcast <16 x float>* %$495 to i8*
  call void @"llvm.prefetch.p0"(i8* %$512, i32 1, i32 3, i32 1)
  %$513 = bitcast <16 x float>* %$497 to i8*
  call void @"llvm.prefetch.p0"(i8* %$513, i32 1, i32 3, i32 1)
  %$514 = bitcast <16 x float>* %$499 to i8*
  call void @"llvm.prefetch.p0"(i8* %$514, i32 1, i32 3, i32 1)
  %$515 = bitcast <16 x float>* %$510 to i8*
  call void @"llvm.prefetch.p0"(i8* %$515, i32 1, i32 3, i32 1)
  %$516 = getelementptr <16 x float>, <16 x float>* %$509, i32 1
  %$517 = bitcast <16 x float>* %$503 to i8*
  call void @"llvm.prefetch.p0"(i8* %$517, i32 1, i32 3, i32 1)
  %$518 = bitcast <16 x float>* %$505 to i8*
  call void @"llvm.prefetch.p0"(i8* %$518, i32 1, i32 3, i32 1)
  %$519 = bitcast <16 x float>* %$507 to i8*
  call void @"llvm.prefetch.p0"(i8* %$519, i32 1, i32 3, i32 1)
  %$520 = bitcast <16 x float>* %$509 to i8*
  call void @"llvm.prefetch.p0"(i8* %$520, i32 1, i32 3, i32 1)
  %$521 = bitcast <16 x float>* %$516 to i8*
  call void @"llvm.prefetch.p0"(i8* %$521, i32 1, i32 3, i32 1)
  %$522 = mul i64 0, %".4"
  %$523 = getelementptr float, float* %".3", i64 %$522
  %$524 = mul i64 1, %".4"
  %$525 = getelementptr float, float* %".3", i64 %$524
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".74"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".75"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".76"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".77"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".78"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".79"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".80"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".81"
  store i64 0, i64* %".82"
  br label %"head.2"
.11.endif.endif.endif:
  %$598 = icmp eq i64 %".9", 1
  br i1 %$598, label %".11.endif.endif.endif.if", label %".11.endif.endif.endif.endif"
head.2:
  %$526 = load i64, i64* %".82"
  %$527 = icmp slt i64 %$526, %".7"
  br i1 %$527, label %"body.2", label %"end.2"
body.2:
  %$528 = mul i64 %$526, 64
  %$529 = getelementptr float, float* %".6", i64 %$528
  %$530 = getelementptr float, float* %$529, i64 0
  %$531 = bitcast float* %$530 to <16 x float>*
  %$532 = getelementptr float, float* %$529, i64 16
  %$533 = bitcast float* %$532 to <16 x float>*
  %$534 = getelementptr float, float* %$529, i64 32
  %$535 = bitcast float* %$534 to <16 x float>*
  %$536 = getelementptr float, float* %$529, i64 48
  %$537 = bitcast float* %$536 to <16 x float>*
  %$538 = load <16 x float>, <16 x float>* %$531, align 64
  %$539 = load <16 x float>, <16 x float>* %$533, align 64
  %$540 = load <16 x float>, <16 x float>* %$535, align 64
  %$541 = load <16 x float>, <16 x float>* %$537, align 64
  %$542 = mul i64 %$526, %".5"
  %$543 = getelementptr float, float* %$523, i64 %$542
  %$544 = load float, float* %$543, align 4
  %".83" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$544, i32 0
  %".84" = shufflevector <16 x float> %".83", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$545 = load <16 x float>, <16 x float>* %".74"
  %$546 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".84", <16 x float> %$538, <16 x float> %$545)
  store <16 x float> %$546, <16 x float>* %".74"
  %$547 = load <16 x float>, <16 x float>* %".75"
  %$548 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".84", <16 x float> %$539, <16 x float> %$547)
  store <16 x float> %$548, <16 x float>* %".75"
  %$549 = load <16 x float>, <16 x float>* %".76"
  %$550 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".84", <16 x float> %$540, <16 x float> %$549)
  store <16 x float> %$550, <16 x float>* %".76"
  %$551 = load <16 x float>, <16 x float>* %".77"
  %$552 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".84", <16 x float> %$541, <16 x float> %$551)
  store <16 x float> %$552, <16 x float>* %".77"
  %$553 = mul i64 %$526, %".5"
  %$554 = getelementptr float, float* %$525, i64 %$553
  %$555 = load float, float* %$554, align 4
  %".85" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$555, i32 0
  %".86" = shufflevector <16 x float> %".85", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$556 = load <16 x float>, <16 x float>* %".78"
  %$557 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".86", <16 x float> %$538, <16 x float> %$556)
  store <16 x float> %$557, <16 x float>* %".78"
  %$558 = load <16 x float>, <16 x float>* %".79"
  %$559 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".86", <16 x float> %$539, <16 x float> %$558)
  store <16 x float> %$559, <16 x float>* %".79"
  %$560 = load <16 x float>, <16 x float>* %".80"
  %$561 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".86", <16 x float> %$540, <16 x float> %$560)
  store <16 x float> %$561, <16 x float>* %".80"
  %$562 = load <16 x float>, <16 x float>* %".81"
  %$563 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".86", <16 x float> %$541, <16 x float> %$562)
  store <16 x float> %$563, <16 x float>* %".81"
  %$564 = add nsw i64 %$526, 1
  store i64 %$564, i64* %".82"
  br label %"head.2"
end.2:
  %$565 = icmp ne i64 %".8", 0
  br i1 %$565, label %"end.2.if", label %"end.2.endif"
end.2.if:
  %$566 = load <16 x float>, <16 x float>* %$493, align 4
  %$567 = load <16 x float>, <16 x float>* %".74"
  %$568 = fadd <16 x float> %$566, %$567
  store <16 x float> %$568, <16 x float>* %".74"
  %$569 = load <16 x float>, <16 x float>* %$495, align 4
  %$570 = load <16 x float>, <16 x float>* %".75"
  %$571 = fadd <16 x float> %$569, %$570
  store <16 x float> %$571, <16 x float>* %".75"
  %$572 = load <16 x float>, <16 x float>* %$497, align 4
  %$573 = load <16 x float>, <16 x float>* %".76"
  %$574 = fadd <16 x float> %$572, %$573
  store <16 x float> %$574, <16 x float>* %".76"
  %$575 = load <16 x float>, <16 x float>* %$499, align 4
  %$576 = load <16 x float>, <16 x float>* %".77"
  %$577 = fadd <16 x float> %$575, %$576
  store <16 x float> %$577, <16 x float>* %".77"
  %$578 = load <16 x float>, <16 x float>* %$503, align 4
  %$579 = load <16 x float>, <16 x float>* %".78"
  %$580 = fadd <16 x float> %$578, %$579
  store <16 x float> %$580, <16 x float>* %".78"
  %$581 = load <16 x float>, <16 x float>* %$505, align 4
  %$582 = load <16 x float>, <16 x float>* %".79"
  %$583 = fadd <16 x float> %$581, %$582
  store <16 x float> %$583, <16 x float>* %".79"
  %$584 = load <16 x float>, <16 x float>* %$507, align 4
  %$585 = load <16 x float>, <16 x float>* %".80"
  %$586 = fadd <16 x float> %$584, %$585
  store <16 x float> %$586, <16 x float>* %".80"
  %$587 = load <16 x float>, <16 x float>* %$509, align 4
  %$588 = load <16 x float>, <16 x float>* %".81"
  %$589 = fadd <16 x float> %$587, %$588
  store <16 x float> %$589, <16 x float>* %".81"
  br label %"end.2.endif"
end.2.endif:
  %$590 = load <16 x float>, <16 x float>* %".74"
  store <16 x float> %$590, <16 x float>* %$493, align 4
  %$591 = load <16 x float>, <16 x float>* %".75"
  store <16 x float> %$591, <16 x float>* %$495, align 4
  %$592 = load <16 x float>, <16 x float>* %".76"
  store <16 x float> %$592, <16 x float>* %$497, align 4
  %$593 = load <16 x float>, <16 x float>* %".77"
  store <16 x float> %$593, <16 x float>* %$499, align 4
  %$594 = load <16 x float>, <16 x float>* %".78"
  store <16 x float> %$594, <16 x float>* %$503, align 4
  %$595 = load <16 x float>, <16 x float>* %".79"
  store <16 x float> %$595, <16 x float>* %$505, align 4
  %$596 = load <16 x float>, <16 x float>* %".80"
  store <16 x float> %$596, <16 x float>* %$507, align 4
  %$597 = load <16 x float>, <16 x float>* %".81"
  store <16 x float> %$597, <16 x float>* %$509, align 4
  br label %".11.endif.endif.endif"
.11.endif.endif.endif.if:
  %$599 = mul i64 0, %".2"
  %$600 = getelementptr float, float* %".1", i64 %$599
  %$601 = getelementptr float, float* %$600, i64 0
  %$602 = bitcast float* %$601 to <16 x float>*
  %$603 = getelementptr float, float* %$600, i64 16
  %$604 = bitcast float* %$603 to <16 x float>*
  %$605 = getelementptr float, float* %$600, i64 32
  %$606 = bitcast float* %$605 to <16 x float>*
  %$607 = getelementptr float, float* %$600, i64 48
  %$608 = bitcast float* %$607 to <16 x float>*
  %$609 = getelementptr <16 x float>, <16 x float>* %$608, i32 1
  %$610 = bitcast <16 x float>* %$602 to i8*
  call void @"llvm.prefetch.p0"(i8* %$610, i32 1, i32 3, i32 1)
  %$611 = bitcast <16 x float>* %$604 to i8*
  call void @"llvm.prefetch.p0"(i8* %$611, i32 1, i32 3, i32 1)
  %$612 = bitcast <16 x float>* %$606 to i8*
  call void @"llvm.prefetch.p0"(i8* %$612, i32 1, i32 3, i32 1)
  %$613 = bitcast <16 x float>* %$608 to i8*
  call void @"llvm.prefetch.p0"(i8* %$613, i32 1, i32 3, i32 1)
  %$614 = bitcast <16 x float>* %$609 to i8*
  call void @"llvm.prefetch.p0"(i8* %$614, i32 1, i32 3, i32 1)
  %$615 = mul i64 0, %".4"
  %$616 = getelementptr float, float* %".3", i64 %$615
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".87"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".88"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".89"
  store <16 x float> <float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0, float 0.0>, <16 x float>* %".90"
  store i64 0, i64* %".91"
  br label %"head.3"
.11.endif.endif.endif.endif:
  ret void
head.3:
  %$617 = load i64, i64* %".91"
  %$618 = icmp slt i64 %$617, %".7"
  br i1 %$618, label %"body.3", label %"end.3"
body.3:
  %$619 = mul i64 %$617, 64
  %$620 = getelementptr float, float* %".6", i64 %$619
  %$621 = getelementptr float, float* %$620, i64 0
  %$622 = bitcast float* %$621 to <16 x float>*
  %$623 = getelementptr float, float* %$620, i64 16
  %$624 = bitcast float* %$623 to <16 x float>*
  %$625 = getelementptr float, float* %$620, i64 32
  %$626 = bitcast float* %$625 to <16 x float>*
  %$627 = getelementptr float, float* %$620, i64 48
  %$628 = bitcast float* %$627 to <16 x float>*
  %$629 = load <16 x float>, <16 x float>* %$622, align 64
  %$630 = load <16 x float>, <16 x float>* %$624, align 64
  %$631 = load <16 x float>, <16 x float>* %$626, align 64
  %$632 = load <16 x float>, <16 x float>* %$628, align 64
  %$633 = mul i64 %$617, %".5"
  %$634 = getelementptr float, float* %$616, i64 %$633
  %$635 = load float, float* %$634, align 4
  %".92" = insertelement <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, float %$635, i32 0
  %".93" = shufflevector <16 x float> %".92", <16 x float> <float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef, float undef>, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$636 = load <16 x float>, <16 x float>* %".87"
  %$637 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".93", <16 x float> %$629, <16 x float> %$636)
  store <16 x float> %$637, <16 x float>* %".87"
  %$638 = load <16 x float>, <16 x float>* %".88"
  %$639 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".93", <16 x float> %$630, <16 x float> %$638)
  store <16 x float> %$639, <16 x float>* %".88"
  %$640 = load <16 x float>, <16 x float>* %".89"
  %$641 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".93", <16 x float> %$631, <16 x float> %$640)
  store <16 x float> %$641, <16 x float>* %".89"
  %$642 = load <16 x float>, <16 x float>* %".90"
  %$643 = call <16 x float> @"llvm.fma.v16f32"(<16 x float> %".93", <16 x float> %$632, <16 x float> %$642)
  store <16 x float> %$643, <16 x float>* %".90"
  %$644 = add nsw i64 %$617, 1
  store i64 %$644, i64* %".91"
  br label %"head.3"
end.3:
  %$645 = icmp ne i64 %".8", 0
  br i1 %$645, label %"end.3.if", label %"end.3.endif"
end.3.if:
  %$646 = load <16 x float>, <16 x float>* %$602, align 4
  %$647 = load <16 x float>, <16 x float>* %".87"
  %$648 = fadd <16 x float> %$646, %$647
  store <16 x float> %$648, <16 x float>* %".87"
  %$649 = load <16 x float>, <16 x float>* %$604, align 4
  %$650 = load <16 x float>, <16 x float>* %".88"
  %$651 = fadd <16 x float> %$649, %$650
  store <16 x float> %$651, <16 x float>* %".88"
  %$652 = load <16 x float>, <16 x float>* %$606, align 4
  %$653 = load <16 x float>, <16 x float>* %".89"
  %$654 = fadd <16 x float> %$652, %$653
  store <16 x float> %$654, <16 x float>* %".89"
  %$655 = load <16 x float>, <16 x float>* %$608, align 4
  %$656 = load <16 x float>, <16 x float>* %".90"
  %$657 = fadd <16 x float> %$655, %$656
  store <16 x float> %$657, <16 x float>* %".90"
  br label %"end.3.endif"
end.3.endif:
  %$658 = load <16 x float>, <16 x float>* %".87"
  store <16 x float> %$658, <16 x float>* %$602, align 4
  %$659 = load <16 x float>, <16 x float>* %".88"
  store <16 x float> %$659, <16 x float>* %$604, align 4
  %$660 = load <16 x float>, <16 x float>* %".89"
  store <16 x float> %$660, <16 x float>* %$606, align 4
  %$661 = load <16 x float>, <16 x float>* %".90"
  store <16 x float> %$661, <16 x float>* %$608, align 4
  br label %".11.endif.endif.endif.endif"
}

declare <16 x float> @"llvm.fma.v16f32"(<16 x float> %".1", <16 x float> %".2", <16 x float> %".3")

declare void @"free"(i64 %".1")

define void @product(ptr %args, i64 %start, i64 %stop) nounwind {
%p0 = getelementptr i64, ptr %args, i64 0
%w0 = load i64, ptr %p0
%a0 = add i64 %w0, 0
%p1 = getelementptr i64, ptr %args, i64 1
%w1 = load i64, ptr %p1
%a1 = add i64 %w1, 0
%p2 = getelementptr i64, ptr %args, i64 2
%w2 = load i64, ptr %p2
%a2 = add i64 %w2, 0
%p3 = getelementptr i64, ptr %args, i64 3
%w3 = load i64, ptr %p3
%a3 = add i64 %w3, 0
%p4 = getelementptr i64, ptr %args, i64 4
%w4 = load i64, ptr %p4
%a4 = add i64 %w4, 0
%p5 = getelementptr i64, ptr %args, i64 5
%w5 = load i64, ptr %p5
%a5 = add i64 %w5, 0
%p6 = getelementptr i64, ptr %args, i64 6
%w6 = load i64, ptr %p6
%a6 = add i64 %w6, 0
%p7 = getelementptr i64, ptr %args, i64 7
%w7 = load i64, ptr %p7
%a7 = add i64 %w7, 0
%p8 = getelementptr i64, ptr %args, i64 8
%w8 = load i64, ptr %p8
%a8 = add i64 %w8, 0
%p9 = getelementptr i64, ptr %args, i64 9
%w9 = load i64, ptr %p9
%a9 = add i64 %w9, 0
%p10 = getelementptr i64, ptr %args, i64 10
%w10 = load i64, ptr %p10
%a10 = add i64 %w10, 0
%p11 = getelementptr i64, ptr %args, i64 11
%w11 = load i64, ptr %p11
%a11 = add i64 %w11, 0
%p12 = getelementptr i64, ptr %args, i64 12
%w12 = load i64, ptr %p12
%a12 = add i64 %w12, 0
%p13 = getelementptr i64, ptr %args, i64 13
%w13 = load i64, ptr %p13
%a13 = add i64 %w13, 0
%p14 = getelementptr i64, ptr %args, i64 14
%w14 = load i64, ptr %p14
%a14 = add i64 %w14, 0
%p15 = getelementptr i64, ptr %args, i64 15
%w15 = load i64, ptr %p15
%a15 = add i64 %w15, 0
call void @"product.product"(i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %a4, i64 %a5, i64 %a6, i64 %a7, i64 %a8, i64 %a9, i64 %a10, i64 %a11, i64 %a12, i64 %a13, i64 %a14, i64 %a15, i64 %start, i64 %stop)

ret void
}
