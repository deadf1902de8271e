; x86_64, pointers as i64*, source 62182d1ef22f7a65837572ed67ae1708bd266ec5df3f7b6d1067c303a2c472f2
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
  %$43 = mul i64 %$42, 8
  %$44 = add i64 %".1", %$43
  store i64 %$44, i64* %"x"
  %$45 = icmp eq i64 %".12", 2
  %$46 = mul i64 %".17", %".14"
  %$47 = load i64, i64* %"j"
  %$48 = mul i64 %$47, %$16
  %$49 = zext i1 %$45 to i64
  %$50 = icmp ne i64 %$49, 0
  %$51 = select i1 %$50, i64 %$46, i64 %$48
  %$52 = mul i64 %$51, 8
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
  %$63 = mul i64 %$62, 8
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
  %$85 = mul i64 %$84, 32
  store i64 0, i64* %"j"
  br label %"head.2"
end.3:
  %$221 = load i64, i64* %"x"
  %$222 = mul i64 %".13", 8
  %$223 = add i64 %$221, %$222
  store i64 %$223, i64* %"x"
  %$224 = load i64, i64* %"y"
  %$225 = mul i64 %".14", 8
  %$226 = add i64 %$224, %$225
  store i64 %$226, i64* %"y"
  %$227 = load i64, i64* %"z"
  %$228 = mul i64 %".15", 8
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
  %$101 = mul i64 %$100, 8
  %$102 = add i64 %$7, %$101
  store i64 %$102, i64* %"panel"
  %$103 = load i64, i64* %"y"
  %$104 = mul i64 %$72, %$12
  %$105 = load i64, i64* %"first"
  %$106 = mul i64 %$105, %$16
  %$107 = add i64 %$104, %$106
  %$108 = mul i64 %$107, 8
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
  %$115 = icmp slt i64 32, %$114
  %$116 = select i1 %$115, i64 32, i64 %$114
  %$117 = inttoptr i64 %$111 to double*
  %$118 = inttoptr i64 %$109 to double*
  call void @"columns_to_panel"(double* %$117, double* %$118, i64 %".9", i64 %$116, i64 %$76)
  br label %"end.6"
no.1:
  %$119 = load i64, i64* %"panel"
  %$120 = load i64, i64* %"n"
  %$121 = load i64, i64* %"first"
  %$122 = sub i64 %$120, %$121
  %$123 = icmp slt i64 32, %$122
  %$124 = select i1 %$123, i64 32, i64 %$122
  %$125 = inttoptr i64 %$119 to double*
  %$126 = inttoptr i64 %$109 to double*
  call void @"rows_to_panel"(double* %$125, double* %$126, i64 %".9", i64 %$124, i64 %$76)
  br label %"end.6"
end.6:
  %$127 = add nsw i64 %$95, 32
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
  %$156 = mul i64 %$155, 8
  %$157 = add i64 %$150, %$156
  %$158 = inttoptr i64 %$157 to double*
  call void @"prefetch_rows"(double* %$158, i64 %".7", i64 %".8", i64 %$76, i64 %$147)
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
  %$167 = mul i64 %$166, 8
  %$168 = add i64 %$162, %$167
  store i64 %$168, i64* %"out"
  store i64 %".11", i64* %"stride"
  %$169 = load i64, i64* %"first"
  %$170 = add i64 %$169, 32
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
  %$177 = inttoptr i64 %$8 to double*
  %$178 = inttoptr i64 %$173 to double*
  call void @"copy_rows"(double* %$177, i64 32, double* %$178, i64 %".11", i64 %$176, i64 %$147)
  store i64 %$8, i64* %"out"
  store i64 32, i64* %"stride"
  br label %"end.10"
no.3:
  br label %"end.10"
end.10:
  %$179 = load i64, i64* %"x"
  %$180 = load i64, i64* %"i"
  %$181 = mul i64 %$180, %".7"
  %$182 = mul i64 %$72, %".8"
  %$183 = add i64 %$181, %$182
  %$184 = mul i64 %$183, 8
  %$185 = add i64 %$179, %$184
  %$186 = load i64, i64* %"first"
  %$187 = load i64, i64* %"j"
  %$188 = sub i64 %$186, %$187
  %$189 = mul i64 %$188, %$76
  %$190 = mul i64 %$189, 8
  %$191 = add i64 %$7, %$190
  store i64 %$191, i64* %"panel"
  %$192 = load i64, i64* %"out"
  %$193 = load i64, i64* %"stride"
  %$194 = load i64, i64* %"panel"
  %$195 = add i64 %$72, %".16"
  %$196 = icmp sgt i64 %$195, 0
  %$197 = zext i1 %$196 to i64
  %$198 = inttoptr i64 %$192 to double*
  %$199 = inttoptr i64 %$185 to double*
  %$200 = inttoptr i64 %$194 to double*
  call void @"tile"(double* %$198, i64 %$193, double* %$199, i64 %".7", i64 %".8", double* %$200, i64 %$76, i64 %$197, i64 %$147)
  %$201 = load i64, i64* %"first"
  %$202 = add i64 %$201, 32
  %$203 = load i64, i64* %"n"
  %$204 = icmp sgt i64 %$202, %$203
  br i1 %$204, label %"yes.4", label %"no.4"
yes.4:
  %$205 = load i64, i64* %"z"
  %$206 = load i64, i64* %"i"
  %$207 = mul i64 %$206, %".11"
  %$208 = load i64, i64* %"first"
  %$209 = add i64 %$207, %$208
  %$210 = mul i64 %$209, 8
  %$211 = add i64 %$205, %$210
  %$212 = load i64, i64* %"n"
  %$213 = load i64, i64* %"first"
  %$214 = sub i64 %$212, %$213
  %$215 = inttoptr i64 %$211 to double*
  %$216 = inttoptr i64 %$8 to double*
  call void @"copy_rows"(double* %$215, i64 %".11", double* %$216, i64 32, i64 %$214, i64 %$147)
  br label %"end.11"
no.4:
  br label %"end.11"
end.11:
  %$217 = add nsw i64 %$160, 32
  store i64 %$217, i64* %".23"
  br label %"head.5"
}

declare i64 @"malloc"(i64 %".1")

declare void @"abort"()

define internal void @"columns_to_panel"(double* noalias %".1", double* noalias %".2", i64 %".3", i64 %".4", i64 %".5") noinline
{
.7:
  %".20" = alloca i64
  %".19" = alloca i64
  %".18" = alloca i64
  %".9" = alloca i64
  %".8" = alloca i64
  %$1 = and i64 %".4", -8
  %$2 = and i64 %".5", -2
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
  store i64 0, i64* %".18"
  br label %"head.2"
head.1:
  %$5 = load i64, i64* %".9"
  %$6 = icmp slt i64 %$5, %$2
  br i1 %$6, label %"body.1", label %"end.1"
body.1:
  %$7 = mul i64 %$5, 32
  %$8 = getelementptr double, double* %".1", i64 %$7
  %$9 = getelementptr double, double* %$8, i64 %$3
  %$10 = getelementptr double, double* %".2", i64 %$5
  %$11 = mul i64 %$3, %".3"
  %$12 = getelementptr double, double* %$10, i64 %$11
  %$13 = mul i64 0, %".3"
  %$14 = getelementptr double, double* %$12, i64 %$13
  %$15 = bitcast double* %$14 to <2 x double>*
  %$16 = load <2 x double>, <2 x double>* %$15, align 8
  %$17 = mul i64 1, %".3"
  %$18 = getelementptr double, double* %$12, i64 %$17
  %$19 = bitcast double* %$18 to <2 x double>*
  %$20 = load <2 x double>, <2 x double>* %$19, align 8
  %$21 = mul i64 2, %".3"
  %$22 = getelementptr double, double* %$12, i64 %$21
  %$23 = bitcast double* %$22 to <2 x double>*
  %$24 = load <2 x double>, <2 x double>* %$23, align 8
  %$25 = mul i64 3, %".3"
  %$26 = getelementptr double, double* %$12, i64 %$25
  %$27 = bitcast double* %$26 to <2 x double>*
  %$28 = load <2 x double>, <2 x double>* %$27, align 8
  %$29 = mul i64 4, %".3"
  %$30 = getelementptr double, double* %$12, i64 %$29
  %$31 = bitcast double* %$30 to <2 x double>*
  %$32 = load <2 x double>, <2 x double>* %$31, align 8
  %$33 = mul i64 5, %".3"
  %$34 = getelementptr double, double* %$12, i64 %$33
  %$35 = bitcast double* %$34 to <2 x double>*
  %$36 = load <2 x double>, <2 x double>* %$35, align 8
  %$37 = mul i64 6, %".3"
  %$38 = getelementptr double, double* %$12, i64 %$37
  %$39 = bitcast double* %$38 to <2 x double>*
  %$40 = load <2 x double>, <2 x double>* %$39, align 8
  %$41 = mul i64 7, %".3"
  %$42 = getelementptr double, double* %$12, i64 %$41
  %$43 = bitcast double* %$42 to <2 x double>*
  %$44 = load <2 x double>, <2 x double>* %$43, align 8
  %".10" = shufflevector <2 x double> %$16, <2 x double> %$24, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".11" = shufflevector <2 x double> %$32, <2 x double> %$40, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".12" = shufflevector <4 x double> %".10", <4 x double> %".11", <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".13" = shufflevector <2 x double> %$20, <2 x double> %$28, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".14" = shufflevector <2 x double> %$36, <2 x double> %$44, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %".15" = shufflevector <4 x double> %".13", <4 x double> %".14", <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %".16" = shufflevector <8 x double> %".12", <8 x double> %".15", <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %".17" = shufflevector <8 x double> %".12", <8 x double> %".15", <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %$45 = getelementptr double, double* %$9, i64 0
  %$46 = bitcast double* %$45 to <8 x double>*
  store <8 x double> %".16", <8 x double>* %$46, align 8
  %$47 = getelementptr double, double* %$9, i64 32
  %$48 = bitcast double* %$47 to <8 x double>*
  store <8 x double> %".17", <8 x double>* %$48, align 8
  %$49 = add nsw i64 %$5, 2
  store i64 %$49, i64* %".9"
  br label %"head.1"
end.1:
  %$50 = add nsw i64 %$3, 8
  store i64 %$50, i64* %".8"
  br label %"head"
head.2:
  %$51 = load i64, i64* %".18"
  %$52 = icmp slt i64 %$51, %".5"
  br i1 %$52, label %"body.2", label %"end.2"
body.2:
  %$53 = mul i64 %$51, 32
  %$54 = getelementptr double, double* %".1", i64 %$53
  store i64 %$1, i64* %".19"
  br label %"head.3"
end.2:
  ret void
head.3:
  %$55 = load i64, i64* %".19"
  %$56 = icmp slt i64 %$55, 32
  br i1 %$56, label %"body.3", label %"end.3"
body.3:
  %$57 = getelementptr double, double* %$54, i64 %$55
  %$58 = bitcast double* %$57 to <8 x double>*
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %$58, align 8
  %$59 = add nsw i64 %$55, 8
  store i64 %$59, i64* %".19"
  br label %"head.3"
end.3:
  %$60 = icmp slt i64 %$51, %$2
  %$61 = select i1 %$60, i64 %$1, i64 0
  store i64 %$61, i64* %".20"
  br label %"head.4"
head.4:
  %$62 = load i64, i64* %".20"
  %$63 = icmp slt i64 %$62, %".4"
  br i1 %$63, label %"body.4", label %"end.4"
body.4:
  %$64 = getelementptr double, double* %".2", i64 %$51
  %$65 = mul i64 %$62, %".3"
  %$66 = getelementptr double, double* %$64, i64 %$65
  %$67 = load double, double* %$66, align 8
  %$68 = getelementptr double, double* %$54, i64 %$62
  store double %$67, double* %$68, align 8
  %$69 = add nsw i64 %$62, 1
  store i64 %$69, i64* %".20"
  br label %"head.4"
end.4:
  %$70 = add nsw i64 %$51, 1
  store i64 %$70, i64* %".18"
  br label %"head.2"
}

define internal void @"rows_to_panel"(double* noalias %".1", double* noalias %".2", i64 %".3", i64 %".4", i64 %".5") noinline
{
.7:
  %".10" = alloca i64
  %".8" = insertelement <8 x i64> <i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef>, i64 %".4", i32 0
  %".9" = shufflevector <8 x i64> %".8", <8 x i64> <i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef, i64 undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$1 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %".9"
  %$2 = icmp slt <8 x i64> <i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>, %".9"
  %$3 = icmp slt <8 x i64> <i64 16, i64 17, i64 18, i64 19, i64 20, i64 21, i64 22, i64 23>, %".9"
  %$4 = icmp slt <8 x i64> <i64 24, i64 25, i64 26, i64 27, i64 28, i64 29, i64 30, i64 31>, %".9"
  store i64 0, i64* %".10"
  br label %"head"
head:
  %$5 = load i64, i64* %".10"
  %$6 = icmp slt i64 %$5, %".5"
  br i1 %$6, label %"body", label %"end"
body:
  %$7 = mul i64 %$5, %".3"
  %$8 = getelementptr double, double* %".2", i64 %$7
  %$9 = getelementptr double, double* %$8, i64 0
  %$10 = bitcast double* %$9 to <8 x double>*
  %$11 = getelementptr double, double* %$8, i64 8
  %$12 = bitcast double* %$11 to <8 x double>*
  %$13 = getelementptr double, double* %$8, i64 16
  %$14 = bitcast double* %$13 to <8 x double>*
  %$15 = getelementptr double, double* %$8, i64 24
  %$16 = bitcast double* %$15 to <8 x double>*
  %$17 = mul i64 %$5, 32
  %$18 = getelementptr double, double* %".1", i64 %$17
  %$19 = getelementptr double, double* %$18, i64 0
  %$20 = bitcast double* %$19 to <8 x double>*
  %$21 = getelementptr double, double* %$18, i64 8
  %$22 = bitcast double* %$21 to <8 x double>*
  %$23 = getelementptr double, double* %$18, i64 16
  %$24 = bitcast double* %$23 to <8 x double>*
  %$25 = getelementptr double, double* %$18, i64 24
  %$26 = bitcast double* %$25 to <8 x double>*
  %$27 = call <8 x double> @"llvm.masked.load.v8f64.p0"(<8 x double>* %$10, i32 8, <8 x i1> %$1, <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>)
  store <8 x double> %$27, <8 x double>* %$20, align 8
  %$28 = call <8 x double> @"llvm.masked.load.v8f64.p0"(<8 x double>* %$12, i32 8, <8 x i1> %$2, <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>)
  store <8 x double> %$28, <8 x double>* %$22, align 8
  %$29 = call <8 x double> @"llvm.masked.load.v8f64.p0"(<8 x double>* %$14, i32 8, <8 x i1> %$3, <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>)
  store <8 x double> %$29, <8 x double>* %$24, align 8
  %$30 = call <8 x double> @"llvm.masked.load.v8f64.p0"(<8 x double>* %$16, i32 8, <8 x i1> %$4, <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>)
  store <8 x double> %$30, <8 x double>* %$26, align 8
  %$31 = add nsw i64 %$5, 1
  store i64 %$31, i64* %".10"
  br label %"head"
end:
  ret void
}

declare <8 x double> @"llvm.masked.load.v8f64.p0"(<8 x double>* %".1", i32 %".2", <8 x i1> %".3", <8 x double> %".4")

define internal void @"prefetch_rows"(double* noalias %".1", i64 %".2", i64 %".3", i64 %".4", i64 %".5") noinline
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
  %$7 = getelementptr double, double* %".1", i64 %$6
  %$8 = getelementptr double, double* %$7, i64 %$4
  %$9 = bitcast double* %$8 to i8*
  call void @"llvm.prefetch.p0"(i8* %$9, i32 0, i32 3, i32 1)
  %$10 = add nsw i64 %$4, 8
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
  %$15 = getelementptr double, double* %".1", i64 %$14
  %$16 = bitcast double* %$15 to i8*
  call void @"llvm.prefetch.p0"(i8* %$16, i32 0, i32 3, i32 1)
  %$17 = add nsw i64 %$12, 1
  store i64 %$17, i64* %".10"
  br label %"head.2"
end.2:
  br label %".7.endif"
}

declare void @"llvm.prefetch.p0"(i8* %".1", i32 %".2", i32 %".3", i32 %".4")

define internal void @"copy_rows"(double* noalias %".1", i64 %".2", double* noalias %".3", i64 %".4", i64 %".5", i64 %".6") noinline
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
  %$6 = getelementptr double, double* %".3", i64 %$5
  %$7 = getelementptr double, double* %$6, i64 %$3
  %$8 = load double, double* %$7, align 8
  %$9 = mul i64 %$1, %".2"
  %$10 = getelementptr double, double* %".1", i64 %$9
  %$11 = getelementptr double, double* %$10, i64 %$3
  store double %$8, double* %$11, align 8
  %$12 = add nsw i64 %$3, 1
  store i64 %$12, i64* %".10"
  br label %"head.1"
end.1:
  %$13 = add nsw i64 %$1, 1
  store i64 %$13, i64* %".9"
  br label %"head"
}

define internal void @"tile"(double* noalias %".1", i64 %".2", double* noalias %".3", i64 %".4", i64 %".5", double* noalias %".6", i64 %".7", i64 %".8", i64 %".9") noinline
{
.11:
  %".91" = alloca i64
  %".90" = alloca <8 x double>
  %".89" = alloca <8 x double>
  %".88" = alloca <8 x double>
  %".87" = alloca <8 x double>
  %".82" = alloca i64
  %".81" = alloca <8 x double>
  %".80" = alloca <8 x double>
  %".79" = alloca <8 x double>
  %".78" = alloca <8 x double>
  %".77" = alloca <8 x double>
  %".76" = alloca <8 x double>
  %".75" = alloca <8 x double>
  %".74" = alloca <8 x double>
  %".65" = alloca i64
  %".64" = alloca <8 x double>
  %".63" = alloca <8 x double>
  %".62" = alloca <8 x double>
  %".61" = alloca <8 x double>
  %".60" = alloca <8 x double>
  %".59" = alloca <8 x double>
  %".58" = alloca <8 x double>
  %".57" = alloca <8 x double>
  %".56" = alloca <8 x double>
  %".55" = alloca <8 x double>
  %".54" = alloca <8 x double>
  %".53" = alloca <8 x double>
  %".52" = alloca <8 x double>
  %".51" = alloca <8 x double>
  %".50" = alloca <8 x double>
  %".49" = alloca <8 x double>
  %".36" = alloca i64
  %".35" = alloca <8 x double>
  %".34" = alloca <8 x double>
  %".33" = alloca <8 x double>
  %".32" = alloca <8 x double>
  %".31" = alloca <8 x double>
  %".30" = alloca <8 x double>
  %".29" = alloca <8 x double>
  %".28" = alloca <8 x double>
  %".27" = alloca <8 x double>
  %".26" = alloca <8 x double>
  %".25" = alloca <8 x double>
  %".24" = alloca <8 x double>
  %".23" = alloca <8 x double>
  %".22" = alloca <8 x double>
  %".21" = alloca <8 x double>
  %".20" = alloca <8 x double>
  %".19" = alloca <8 x double>
  %".18" = alloca <8 x double>
  %".17" = alloca <8 x double>
  %".16" = alloca <8 x double>
  %".15" = alloca <8 x double>
  %".14" = alloca <8 x double>
  %".13" = alloca <8 x double>
  %".12" = alloca <8 x double>
  %$1 = icmp eq i64 %".9", 6
  br i1 %$1, label %".11.if", label %".11.endif"
.11.if:
  %$2 = mul i64 0, %".2"
  %$3 = getelementptr double, double* %".1", i64 %$2
  %$4 = getelementptr double, double* %$3, i64 0
  %$5 = bitcast double* %$4 to <8 x double>*
  %$6 = getelementptr double, double* %$3, i64 8
  %$7 = bitcast double* %$6 to <8 x double>*
  %$8 = getelementptr double, double* %$3, i64 16
  %$9 = bitcast double* %$8 to <8 x double>*
  %$10 = getelementptr double, double* %$3, i64 24
  %$11 = bitcast double* %$10 to <8 x double>*
  %$12 = mul i64 1, %".2"
  %$13 = getelementptr double, double* %".1", i64 %$12
  %$14 = getelementptr double, double* %$13, i64 0
  %$15 = bitcast double* %$14 to <8 x double>*
  %$16 = getelementptr double, double* %$13, i64 8
  %$17 = bitcast double* %$16 to <8 x double>*
  %$18 = getelementptr double, double* %$13, i64 16
  %$19 = bitcast double* %$18 to <8 x double>*
  %$20 = getelementptr double, double* %$13, i64 24
  %$21 = bitcast double* %$20 to <8 x double>*
  %$22 = mul i64 2, %".2"
  %$23 = getelementptr double, double* %".1", i64 %$22
  %$24 = getelementptr double, double* %$23, i64 0
  %$25 = bitcast double* %$24 to <8 x double>*
  %$26 = getelementptr double, double* %$23, i64 8
  %$27 = bitcast double* %$26 to <8 x double>*
  %$28 = getelementptr double, double* %$23, i64 16
  %$29 = bitcast double* %$28 to <8 x double>*
  %$30 = getelementptr double, double* %$23, i64 24
  %$31 = bitcast double* %$30 to <8 x double>*
  %$32 = mul i64 3, %".2"
  %$33 = getelementptr double, double* %".1", i64 %$32
  %$34 = getelementptr double, double* %$33, i64 0
  %$35 = bitcast double* %$34 to <8 x double>*
  %$36 = getelementptr double, double* %$33, i64 8
  %$37 = bitcast double* %$36 to <8 x double>*
  %$38 = getelementptr double, double* %$33, i64 16
  %$39 = bitcast double* %$38 to <8 x double>*
  %$40 = getelementptr double, double* %$33, i64 24
  %$41 = bitcast double* %$40 to <8 x double>*
  %$42 = mul i64 4, %".2"
  %$43 = getelementptr double, double* %".1", i64 %$42
  %$44 = getelementptr double, double* %$43, i64 0
  %$45 = bitcast double* %$44 to <8 x double>*
  %$46 = getelementptr double, double* %$43, i64 8
  %$47 = bitcast double* %$46 to <8 x double>*
  %$48 = getelementptr double, double* %$43, i64 16
  %$49 = bitcast double* %$48 to <8 x double>*
  %$50 = getelementptr double, double* %$43, i64 24
  %$51 = bitcast double* %$50 to <8 x double>*
  %$52 = mul i64 5, %".2"
  %$53 = getelementptr double, double* %".1", i64 %$52
  %$54 = getelementptr double, double* %$53, i64 0
  %$55 = bitcast double* %$54 to <8 x double>*
  %$56 = getelementptr double, double* %$53, i64 8
  %$57 = bitcast double* %$56 to <8 x double>*
  %$58 = getelementptr double, double* %$53, i64 16
  %$59 = bitcast double* %$58 to <8 x double>*
  %$60 = getelementptr double, double* %$53, i64 24
  %$61 = bitcast double* %$60 to <8 x double>*
  %$62 = getelementptr <8 x double>, <8 x double>* %$11, i32 1
  %$63 = bitcast <8 x double>* %$5 to i8*
  call void @"llvm.prefetch.p0"(i8* %$63, i32 1, i32 3, i32 1)
  %$64 = bitcast <8 x double>* %$7 to i8*
  call void @"llvm.prefetch.p0"(i8* %$64, i32 1, i32 3, i32 1)
  %$65 = bitcast <8 x double>* %$9 to i8*
  call void @"llvm.prefetch.p0"(i8* %$65, i32 1, i32 3, i32 1)
  %$66 = bitcast <8 x double>* %$11 to i8*
  call void @"llvm.prefetch.p0"(i8* %$66, i32 1, i32 3, i32 1)
  %$67 = bitcast <8 x double>* %$62 to i8*
  call void @"llvm.prefetch.p0"(i8* %$67, i32 1, i32 3, i32 1)
  %$68 = getelementptr <8 x double>, <8 x double>* %$21, i32 1
  %$69 = bitcast <8 x double>* %$15 to i8*
  call void @"llvm.prefetch.p0"(i8* %$69, i32 1, i32 3, i32 1)
  %$70 = bitcast <8 x double>* %$17 to i8*
  call void @"llvm.prefetch.p0"(i8* %$70, i32 1, i32 3, i32 1)
  %$71 = bitcast <8 x double>* %$19 to i8*
  call void @"llvm.prefetch.p0"(i8* %$71, i32 1, i32 3, i32 1)
  %$72 = bitcast <8 x double>* %$21 to i8*
  call void @"llvm.prefetch.p0"(i8* %$72, i32 1, i32 3, i32 1)
  %$73 = bitcast <8 x double>* %$68 to i8*
  call void @"llvm.prefetch.p0"(i8* %$73, i32 1, i32 3, i32 1)
  %$74 = getelementptr <8 x double>, <8 x double>* %$31, i32 1
  %$75 = bitcast <8 x double>* %$25 to i8*
  call void @"llvm.prefetch.p0"(i8* %$75, i32 1, i32 3, i32 1)
  %$76 = bitcast <8 x double>* %$27 to i8*
  call void @"llvm.prefetch.p0"(i8* %$76, i32 1, i32 3, i32 1)
  %$77 = bitcast <8 x double>* %$29 to i8*
  call void @"llvm.prefetch.p0"(i8* %$77, i32 1, i32 3, i32 1)
  %$78 = bitcast <8 x double>* %$31 to i8*
  call void @"llvm.prefetch.p0"(i8* %$78, i32 1, i32 3, i32 1)
  %$79 = bitcast <8 x double>* %$74 to i8*
  call void @"llvm.prefetch.p0"(i8* %$79, i32 1, i32 3, i32 1)
  %$80 = getelementptr <8 x double>, <8 x double>* %$41, i32 1
  %$81 = bitcast <8 x double>* %$35 to i8*
  call void @"llvm.prefetch.p0"(i8* %$81, i32 1, i32 3, i32 1)
  %$82 = bitcast <8 x double>* %$37 to i8*
  call void @"llvm.prefetch.p0"(i8* %$82, i32 1, i32 3, i32 1)
  %$83 = bitcast <8 x double>* %$39 to i8*
  call void @"llvm.prefetch.p0"(i8* %$83, i32 1, i32 3, i32 1)
  %$84 = bitcast <8 x double>* %$41 to i8*
  call void @"llvm.prefetch.p0"(i8* %$84, i32 1, i32 3, i32 1)
  %$85 = bitcast <8 x double>* %$80 to i8*
  call void @"llvm.prefetch.p0"(i8* %$85, i32 1, i32 3, i32 1)
  %$86 = getelementptr <8 x double>, <8 x double>* %$51, i32 1
  %$87 = bitcast <8 x double>* %$45 to i8*
  call void @"llvm.prefetch.p0"(i8* %$87, i32 1, i32 3, i32 1)
  %$88 = bitcast <8 x double>* %$47 to i8*
  call void @"llvm.prefetch.p0"(i8* %$88, i32 1, i32 3, i32 1)
  %$89 = bitcast <8 x double>* %$49 to i8*
  call void @"llvm.prefetch.p0"(i8* %$89, i32 1, i32 3, i32 1)
  %$90 = bitcast <8 x double>* %$51 to i8*
  call void @"llvm.prefetch.p0"(i8* %$90, i32 1, i32 3, i32 1)
  %$91 = bitcast <8 x double>* %$86 to i8*
  call void @"llvm.prefetch.p0"(i8* %$91, i32 1, i32 3, i32 1)
  %$92 = getelementptr <8 x double>, <8 x double>* %$61, i32 1
  %$93 = bitcast <8 x double>* %$55 to i8*
  call void @"llvm.prefetch.p0"(i8* %$93, i32 1, i32 3, i32 1)
  %$94 = bitcast <8 x double>* %$57 to i8*
  call void @"llvm.prefetch.p0"(i8* %$94, i32 1, i32 3, i32 1)
  %$95 = bitcast <8 x double>* %$59 to i8*
  call void @"llvm.prefetch.p0"(i8* %$95, i32 1, i32 3, i32 1)
  %$96 = bitcast <8 x double>* %$61 to i8*
  call void @"llvm.prefetch.p0"(i8* %$96, i32 1, i32 3, i32 1)
  %$97 = bitcast <8 x double>* %$92 to i8*
  call void @"llvm.prefetch.p0"(i8* %$97, i32 1, i32 3, i32 1)
  %$98 = mul i64 0, %".4"
  %$99 = getelementptr double, double* %".3", i64 %$98
  %$100 = mul i64 1, %".4"
  %$101 = getelementptr double, double* %".3", i64 %$100
  %$102 = mul i64 2, %".4"
  %$103 = getelementptr double, double* %".3", i64 %$102
  %$104 = mul i64 3, %".4"
  %$105 = getelementptr double, double* %".3", i64 %$104
  %$106 = mul i64 4, %".4"
  %$107 = getelementptr double, double* %".3", i64 %$106
  %$108 = mul i64 5, %".4"
  %$109 = getelementptr double, double* %".3", i64 %$108
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".12"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".13"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".14"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".15"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".16"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".17"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".18"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".19"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".20"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".21"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".22"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".23"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".24"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".25"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".26"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".27"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".28"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".29"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".30"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".31"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".32"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".33"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".34"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".35"
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
  %$112 = mul i64 %$110, 32
  %$113 = getelementptr double, double* %".6", i64 %$112
  %$114 = getelementptr double, double* %$113, i64 0
  %$115 = bitcast double* %$114 to <8 x double>*
  %$116 = getelementptr double, double* %$113, i64 8
  %$117 = bitcast double* %$116 to <8 x double>*
  %$118 = getelementptr double, double* %$113, i64 16
  %$119 = bitcast double* %$118 to <8 x double>*
  %$120 = getelementptr double, double* %$113, i64 24
  %$121 = bitcast double* %$120 to <8 x double>*
  %$122 = load <8 x double>, <8 x double>* %$115, align 64
  %$123 = load <8 x double>, <8 x double>* %$117, align 64
  %$124 = load <8 x double>, <8 x double>* %$119, align 64
  %$125 = load <8 x double>, <8 x double>* %$121, align 64
  %$126 = mul i64 %$110, %".5"
  %$127 = getelementptr double, double* %$99, i64 %$126
  %$128 = load double, double* %$127, align 8
  %".37" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$128, i32 0
  %".38" = shufflevector <8 x double> %".37", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$129 = load <8 x double>, <8 x double>* %".12"
  %$130 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".38", <8 x double> %$122, <8 x double> %$129)
  store <8 x double> %$130, <8 x double>* %".12"
  %$131 = load <8 x double>, <8 x double>* %".13"
  %$132 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".38", <8 x double> %$123, <8 x double> %$131)
  store <8 x double> %$132, <8 x double>* %".13"
  %$133 = load <8 x double>, <8 x double>* %".14"
  %$134 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".38", <8 x double> %$124, <8 x double> %$133)
  store <8 x double> %$134, <8 x double>* %".14"
  %$135 = load <8 x double>, <8 x double>* %".15"
  %$136 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".38", <8 x double> %$125, <8 x double> %$135)
  store <8 x double> %$136, <8 x double>* %".15"
  %$137 = mul i64 %$110, %".5"
  %$138 = getelementptr double, double* %$101, i64 %$137
  %$139 = load double, double* %$138, align 8
  %".39" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$139, i32 0
  %".40" = shufflevector <8 x double> %".39", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$140 = load <8 x double>, <8 x double>* %".16"
  %$141 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".40", <8 x double> %$122, <8 x double> %$140)
  store <8 x double> %$141, <8 x double>* %".16"
  %$142 = load <8 x double>, <8 x double>* %".17"
  %$143 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".40", <8 x double> %$123, <8 x double> %$142)
  store <8 x double> %$143, <8 x double>* %".17"
  %$144 = load <8 x double>, <8 x double>* %".18"
  %$145 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".40", <8 x double> %$124, <8 x double> %$144)
  store <8 x double> %$145, <8 x double>* %".18"
  %$146 = load <8 x double>, <8 x double>* %".19"
  %$147 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".40", <8 x double> %$125, <8 x double> %$146)
  store <8 x double> %$147, <8 x double>* %".19"
  %$148 = mul i64 %$110, %".5"
  %$149 = getelementptr double, double* %$103, i64 %$148
  %$150 = load double, double* %$149, align 8
  %".41" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$150, i32 0
  %".42" = shufflevector <8 x double> %".41", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$151 = load <8 x double>, <8 x double>* %".20"
  %$152 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".42", <8 x double> %$122, <8 x double> %$151)
  store <8 x double> %$152, <8 x double>* %".20"
  %$153 = load <8 x double>, <8 x double>* %".21"
  %$154 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".42", <8 x double> %$123, <8 x double> %$153)
  store <8 x double> %$154, <8 x double>* %".21"
  %$155 = load <8 x double>, <8 x double>* %".22"
  %$156 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".42", <8 x double> %$124, <8 x double> %$155)
  store <8 x double> %$156, <8 x double>* %".22"
  %$157 = load <8 x double>, <8 x double>* %".23"
  %$158 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".42", <8 x double> %$125, <8 x double> %$157)
  store <8 x double> %$158, <8 x double>* %".23"
  %$159 = mul i64 %$110, %".5"
  %$160 = getelementptr double, double* %$105, i64 %$159
  %$161 = load double, double* %$160, align 8
  %".43" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$161, i32 0
  %".44" = shufflevector <8 x double> %".43", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$162 = load <8 x double>, <8 x double>* %".24"
  %$163 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".44", <8 x double> %$122, <8 x double> %$162)
  store <8 x double> %$163, <8 x double>* %".24"
  %$164 = load <8 x double>, <8 x double>* %".25"
  %$165 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".44", <8 x double> %$123, <8 x double> %$164)
  store <8 x double> %$165, <8 x double>* %".25"
  %$166 = load <8 x double>, <8 x double>* %".26"
  %$167 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".44", <8 x double> %$124, <8 x double> %$166)
  store <8 x double> %$167, <8 x double>* %".26"
  %$168 = load <8 x double>, <8 x double>* %".27"
  %$169 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".44", <8 x double> %$125, <8 x double> %$168)
  store <8 x double> %$169, <8 x double>* %".27"
  %$170 = mul i64 %$110, %".5"
  %$171 = getelementptr double, double* %$107, i64 %$170
  %$172 = load double, double* %$171, align 8
  %".45" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$172, i32 0
  %".46" = shufflevector <8 x double> %".45", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$173 = load <8 x double>, <8 x double>* %".28"
  %$174 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".46", <8 x double> %$122, <8 x double> %$173)
  store <8 x double> %$174, <8 x double>* %".28"
  %$175 = load <8 x double>, <8 x double>* %".29"
  %$176 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".46", <8 x double> %$123, <8 x double> %$175)
  store <8 x double> %$176, <8 x double>* %".29"
  %$177 = load <8 x double>, <8 x double>* %".30"
  %$178 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".46", <8 x double> %$124, <8 x double> %$177)
  store <8 x double> %$178, <8 x double>* %".30"
  %$179 = load <8 x double>, <8 x double>* %".31"
  %$180 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".46", <8 x double> %$125, <8 x double> %$179)
  store <8 x double> %$180, <8 x double>* %".31"
  %$181 = mul i64 %$110, %".5"
  %$182 = getelementptr double, double* %$109, i64 %$181
  %$183 = load double, double* %$182, align 8
  %".47" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$183, i32 0
  %".48" = shufflevector <8 x double> %".47", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$184 = load <8 x double>, <8 x double>* %".32"
  %$185 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".48", <8 x double> %$122, <8 x double> %$184)
  store <8 x double> %$185, <8 x double>* %".32"
  %$186 = load <8 x double>, <8 x double>* %".33"
  %$187 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".48", <8 x double> %$123, <8 x double> %$186)
  store <8 x double> %$187, <8 x double>* %".33"
  %$188 = load <8 x double>, <8 x double>* %".34"
  %$189 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".48", <8 x double> %$124, <8 x double> %$188)
  store <8 x double> %$189, <8 x double>* %".34"
  %$190 = load <8 x double>, <8 x double>* %".35"
  %$191 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".48", <8 x double> %$125, <8 x double> %$190)
  store <8 x double> %$191, <8 x double>* %".35"
  %$192 = add nsw i64 %$110, 1
  store i64 %$192, i64* %".36"
  br label %"head"
end:
  %$193 = icmp ne i64 %".8", 0
  br i1 %$193, label %"end.if", label %"end.endif"
end.if:
  %$194 = load <8 x double>, <8 x double>* %$5, align 8
  %$195 = load <8 x double>, <8 x double>* %".12"
  %$196 = fadd <8 x double> %$194, %$195
  store <8 x double> %$196, <8 x double>* %".12"
  %$197 = load <8 x double>, <8 x double>* %$7, align 8
  %$198 = load <8 x double>, <8 x double>* %".13"
  %$199 = fadd <8 x double> %$197, %$198
  store <8 x double> %$199, <8 x double>* %".13"
  %$200 = load <8 x double>, <8 x double>* %$9, align 8
  %$201 = load <8 x double>, <8 x double>* %".14"
  %$202 = fadd <8 x double> %$200, %$201
  store <8 x double> %$202, <8 x double>* %".14"
  %$203 = load <8 x double>, <8 x double>* %$11, align 8
  %$204 = load <8 x double>, <8 x double>* %".15"
  %$205 = fadd <8 x double> %$203, %$204
  store <8 x double> %$205, <8 x double>* %".15"
  %$206 = load <8 x double>, <8 x double>* %$15, align 8
  %$207 = load <8 x double>, <8 x double>* %".16"
  %$208 = fadd <8 x double> %$206, %$207
  store <8 x double> %$208, <8 x double>* %".16"
  %$209 = load <8 x double>, <8 x double>* %$17, align 8
  %$210 = load <8 x double>, <8 x double>* %".17"
  %$211 = fadd <8 x double> %$209, %$210
  store <8 x double> %$211, <8 x double>* %".17"
  %$212 = load <8 x double>, <8 x double>* %$19, align 8
  %$213 = load <8 x double>, <8 x double>* %".18"
  %$214 = fadd <8 x double> %$212, %$213
  store <8 x double> %$214, <8 x double>* %".18"
  %$215 = load <8 x double>, <8 x double>* %$21, align 8
  %$216 = load <8 x double>, <8 x double>* %".19"
  %$217 = fadd <8 x double> %$215, %$216
  store <8 x double> %$217, <8 x double>* %".19"
  %$218 = load <8 x double>, <8 x double>* %$25, align 8
  %$219 = load <8 x double>, <8 x double>* %".20"
  %$220 = fadd <8 x double> %$218, %$219
  store <8 x double> %$220, <8 x double>* %".20"
  %$221 = load <8 x double>, <8 x double>* %$27, align 8
  %$222 = load <8 x double>, <8 x double>* %".21"
  %$223 = fadd <8 x double> %$221, %$222
  store <8 x double> %$223, <8 x double>* %".21"
  %$224 = load <8 x double>, <8 x double>* %$29, align 8
  %$225 = load <8 x double>, <8 x double>* %".22"
  %$226 = fadd <8 x double> %$224, %$225
  store <8 x double> %$226, <8 x double>* %".22"
  %$227 = load <8 x double>, <8 x double>* %$31, align 8
  %$228 = load <8 x double>, <8 x double>* %".23"
  %$229 = fadd <8 x double> %$227, %$228
  store <8 x double> %$229, <8 x double>* %".23"
  %$230 = load <8 x double>, <8 x double>* %$35, align 8
  %$231 = load <8 x double>, <8 x double>* %".24"
  %$232 = fadd <8 x double> %$230, %$231
  store <8 x double> %$232, <8 x double>* %".24"
  %$233 = load <8 x double>, <8 x double>* %$37, align 8
  %$234 = load <8 x double>, <8 x double>* %".25"
  %$235 = fadd <8 x double> %$233, %$234
  store <8 x double> %$235, <8 x double>* %".25"
  %$236 = load <8 x double>, <8 x double>* %$39, align 8
  %$237 = load <8 x double>, <8 x double>* %".26"
  %$238 = fadd <8 x double> %$236, %$237
  store <8 x double> %$238, <8 x double>* %".26"
  %$239 = load <8 x double>, <8 x double>* %$41, align 8
  %$240 = load <8 x double>, <8 x double>* %".27"
  %$241 = fadd <8 x double> %$239, %$240
  store <8 x double> %$241, <8 x double>* %".27"
  %$242 = load <8 x double>, <8 x double>* %$45, align 8
  %$243 = load <8 x double>, <8 x double>* %".28"
  %$244 = fadd <8 x double> %$242, %$243
  store <8 x double> %$244, <8 x double>* %".28"
  %$245 = load <8 x double>, <8 x double>* %$47, align 8
  %$246 = load <8 x double>, <8 x double>* %".29"
  %$247 = fadd <8 x double> %$245, %$246
  store <8 x double> %$247, <8 x double>* %".29"
  %$248 = load <8 x double>, <8 x double>* %$49, align 8
  %$249 = load <8 x double>, <8 x double>* %".30"
  %$250 = fadd <8 x double> %$248, %$249
  store <8 x double> %$250, <8 x double>* %".30"
  %$251 = load <8 x double>, <8 x double>* %$51, align 8
  %$252 = load <8 x double>, <8 x double>* %".31"
  %$253 = fadd <8 x double> %$251, %$252
  store <8 x double> %$253, <8 x double>* %".31"
  %$254 = load <8 x double>, <8 x double>* %$55, align 8
  %$255 = load <8 x double>, <8 x double>* %".32"
  %$256 = fadd <8 x double> %$254, %$255
  store <8 x double> %$256, <8 x double>* %".32"
  %$257 = load <8 x double>, <8 x double>* %$57, align 8
  %$258 = load <8 x double>, <8 x double>* %".33"
  %$259 = fadd <8 x double> %$257, %$258
  store <8 x double> %$259, <8 x double>* %".33"
  %$260 = load <8 x double>, <8 x double>* %$59, align 8
  %$261 = load <8 x double>, <8 x double>* %".34"
  %$262 = fadd <8 x double> %$260, %$261
  store <8 x double> %$262, <8 x double>* %".34"
  %$263 = load <8 x double>, <8 x double>* %$61, align 8
  %$264 = load <8 x double>, <8 x double>* %".35"
  %$265 = fadd <8 x double> %$263, %$264
  store <8 x double> %$265, <8 x double>* %".35"
  br label %"end.endif"
end.endif:
  %$266 = load <8 x double>, <8 x double>* %".12"
  store <8 x double> %$266, <8 x double>* %$5, align 8
  %$267 = load <8 x double>, <8 x double>* %".13"
  store <8 x double> %$267, <8 x double>* %$7, align 8
  %$268 = load <8 x double>, <8 x double>* %".14"
  store <8 x double> %$268, <8 x double>* %$9, align 8
  %$269 = load <8 x double>, <8 x double>* %".15"
  store <8 x double> %$269, <8 x double>* %$11, align 8
  %$270 = load <8 x double>, <8 x double>* %".16"
  store <8 x double> %$270, <8 x double>* %$15, align 8
  %$271 = load <8 x double>, <8 x double>* %".17"
  store <8 x double> %$271, <8 x double>* %$17, align 8
  %$272 = load <8 x double>, <8 x double>* %".18"
  store <8 x double> %$272, <8 x double>* %$19, align 8
  %$273 = load <8 x double>, <8 x double>* %".19"
  store <8 x double> %$273, <8 x double>* %$21, align 8
  %$274 = load <8 x double>, <8 x double>* %".20"
  store <8 x double> %$274, <8 x double>* %$25, align 8
  %$275 = load <8 x double>, <8 x double>* %".21"
  store <8 x double> %$275, <8 x double>* %$27, align 8
  %$276 = load <8 x double>, <8 x double>* %".22"
  store <8 x double> %$276, <8 x double>* %$29, align 8
  %$277 = load <8 x double>, <8 x double>* %".23"
  store <8 x double> %$277, <8 x double>* %$31, align 8
  %$278 = load <8 x double>, <8 x double>* %".24"
  store <8 x double> %$278, <8 x double>* %$35, align 8
  %$279 = load <8 x double>, <8 x double>* %".25"
  store <8 x double> %$279, <8 x double>* %$37, align 8
  %$280 = load <8 x double>, <8 x double>* %".26"
  store <8 x double> %$280, <8 x double>* %$39, align 8
  %$281 = load <8 x double>, <8 x double>* %".27"
  store <8 x double> %$281, <8 x double>* %$41, align 8
  %$282 = load <8 x double>, <8 x double>* %".28"
  store <8 x double> %$282, <8 x double>* %$45, align 8
  %$283 = load <8 x double>, <8 x double>* %".29"
  store <8 x double> %$283, <8 x double>* %$47, align 8
  %$284 = load <8 x double>, <8 x double>* %".30"
  store <8 x double> %$284, <8 x double>* %$49, align 8
  %$285 = load <8 x double>, <8 x double>* %".31"
  store <8 x double> %$285, <8 x double>* %$51, align 8
  %$286 = load <8 x double>, <8 x double>* %".32"
  store <8 x double> %$286, <8 x double>* %$55, align 8
  %$287 = load <8 x double>, <8 x double>* %".33"
  store <8 x double> %$287, <8 x double>* %$57, align 8
  %$288 = load <8 x double>, <8 x double>* %".34"
  store <8 x double> %$288, <8 x double>* %$59, align 8
  %$289 = load <8 x double>, <8 x double>* %".35"
  store <8 x double> %$289, <8 x double>* %$61, align 8
  br label %".11.endif"
.11.endif.if:
  %$291 = mul i64 0, %".2"
  %$292 = getelementptr double, double* %".1", i64 %$291
  %$293 = getelementptr double, double* %$292, i64 0
  %$294 = bitcast double* %$293 to <8 x double>*
  %$295 = getelementptr double, double* %$292, i64 8
  %$296 = bitcast double* %$295 to <8 x double>*
  %$297 = getelementptr double, double* %$292, i64 16
  %$298 = bitcast double* %$297 to <8 x double>*
  %$299 = getelementptr double, double* %$292, i64 24
  %$300 = bitcast double* %$299 to <8 x double>*
  %$301 = mul i64 1, %".2"
  %$302 = getelementptr double, double* %".1", i64 %$301
  %$303 = getelementptr double, double* %$302, i64 0
  %$304 = bitcast double* %$303 to <8 x double>*
  %$305 = getelementptr double, double* %$302, i64 8
  %$306 = bitcast double* %$305 to <8 x double>*
  %$307 = getelementptr double, double* %$302, i64 16
  %$308 = bitcast double* %$307 to <8 x double>*
  %$309 = getelementptr double, double* %$302, i64 24
  %$310 = bitcast double* %$309 to <8 x double>*
  %$311 = mul i64 2, %".2"
  %$312 = getelementptr double, double* %".1", i64 %$311
  %$313 = getelementptr double, double* %$312, i64 0
  %$314 = bitcast double* %$313 to <8 x double>*
  %$315 = getelementptr double, double* %$312, i64 8
  %$316 = bitcast double* %$315 to <8 x double>*
  %$317 = getelementptr double, double* %$312, i64 16
  %$318 = bitcast double* %$317 to <8 x double>*
  %$319 = getelementptr double, double* %$312, i64 24
  %$320 = bitcast double* %$319 to <8 x double>*
  %$321 = mul i64 3, %".2"
  %$322 = getelementptr double, double* %".1", i64 %$321
  %$323 = getelementptr double, double* %$322, i64 0
  %$324 = bitcast double* %$323 to <8 x double>*
  %$325 = getelementptr double, double* %$322, i64 8
  %$326 = bitcast double* %$325 to <8 x double>*
  %$327 = getelementptr double, double* %$322, i64 16
  %$328 = bitcast double* %$327 to <8 x double>*
  %$329 = getelementptr double, double* %$322, i64 24
  %$330 = bitcast double* %$329 to <8 x double>*
  %$331 = getelementptr <8 x double>, <8 x double>* %$300, i32 1
  %$332 = bitcast <8 x double>* %$294 to i8*
  call void @"llvm.prefetch.p0"(i8* %$332, i32 1, i32 3, i32 1)
  %$333 = bitcast <8 x double>* %$296 to i8*
  call void @"llvm.prefetch.p0"(i8* %$333, i32 1, i32 3, i32 1)
  %$334 = bitcast <8 x double>* %$298 to i8*
  call void @"llvm.prefetch.p0"(i8* %$334, i32 1, i32 3, i32 1)
  %$335 = bitcast <8 x double>* %$300 to i8*
  call void @"llvm.prefetch.p0"(i8* %$335, i32 1, i32 3, i32 1)
  %$336 = bitcast <8 x double>* %$331 to i8*
  call void @"llvm.prefetch.p0"(i8* %$336, i32 1, i32 3, i32 1)
  %$337 = getelementptr <8 x double>, <8 x double>* %$310, i32 1
  %$338 = bitcast <8 x double>* %$304 to i8*
  call void @"llvm.prefetch.p0"(i8* %$338, i32 1, i32 3, i32 1)
  %$339 = bitcast <8 x double>* %$306 to i8*
  call void @"llvm.prefetch.p0"(i8* %$339, i32 1, i32 3, i32 1)
  %$340 = bitcast <8 x double>* %$308 to i8*
  call void @"llvm.prefetch.p0"(i8* %$340, i32 1, i32 3, i32 1)
  %$341 = bitcast <8 x double>* %$310 to i8*
  call void @"llvm.prefetch.p0"(i8* %$341, i32 1, i32 3, i32 1)
  %$342 = bitcast <8 x double>* %$337 to i8*
  call void @"llvm.prefetch.p0"(i8* %$342, i32 1, i32 3, i32 1)
  %$343 = getelementptr <8 x double>, <8 x double>* %$320, i32 1
  %$344 = bitcast <8 x double>* %$314 to i8*
  call void @"llvm.prefetch.p0"(i8* %$344, i32 1, i32 3, i32 1)
  %$345 = bitcast <8 x double>* %$316 to i8*
  call void @"llvm.prefetch.p0"(i8* %$345, i32 1, i32 3, i32 1)
  %$346 = bitcast <8 x double>* %$318 to i8*
  call void @"llvm.prefetch.p0"(i8* %$346, i32 1, i32 3, i32 1)
  %$347 = bitcast <8 x double>* %$320 to i8*
  call void @"llvm.prefetch.p0"(i8* %$347, i32 1, i32 3, i32 1)
  %$348 = bitcast <8 x double>* %$343 to i8*
  call void @"llvm.prefetch.p0"(i8* %$348, i32 1, i32 3, i32 1)
  %$349 = getelementptr <8 x double>, <8 x double>* %$330, i32 1
  %$350 = bitcast <8 x double>* %$324 to i8*
  call void @"llvm.prefetch.p0"(i8* %$350, i32 1, i32 3, i32 1)
  %$351 = bitcast <8 x double>* %$326 to i8*
  call void @"llvm.prefetch.p0"(i8* %$351, i32 1, i32 3, i32 1)
  %$352 = bitcast <8 x double>* %$328 to i8*
  call void @"llvm.prefetch.p0"(i8* %$352, i32 1, i32 3, i32 1)
  %$353 = bitcast <8 x double>* %$330 to i8*
  call void @"llvm.prefetch.p0"(i8* %$353, i32 1, i32 3, i32 1)
  %$354 = bitcast <8 x double>* %$349 to i8*
  call void @"llvm.prefetch.p0"(i8* %$354, i32 1, i32 3, i32 1)
  %$355 = mul i64 0, %".4"
  %$356 = getelementptr double, double* %".3", i64 %$355
  %$357 = mul i64 1, %".4"
  %$358 = getelementptr double, double* %".3", i64 %$357
  %$359 = mul i64 2, %".4"
  %$360 = getelementptr double, double* %".3", i64 %$359
  %$361 = mul i64 3, %".4"
  %$362 = getelementptr double, double* %".3", i64 %$361
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".49"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".50"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".51"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".52"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".53"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".54"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".55"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".56"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".57"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".58"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".59"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".60"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".61"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".62"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".63"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".64"
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
  %$365 = mul i64 %$363, 32
  %$366 = getelementptr double, double* %".6", i64 %$365
  %$367 = getelementptr double, double* %$366, i64 0
  %$368 = bitcast double* %$367 to <8 x double>*
  %$369 = getelementptr double, double* %$366, i64 8
  %$370 = bitcast double* %$369 to <8 x double>*
  %$371 = getelementptr double, double* %$366, i64 16
  %$372 = bitcast double* %$371 to <8 x double>*
  %$373 = getelementptr double, double* %$366, i64 24
  %$374 = bitcast double* %$373 to <8 x double>*
  %$375 = load <8 x double>, <8 x double>* %$368, align 64
  %$376 = load <8 x double>, <8 x double>* %$370, align 64
  %$377 = load <8 x double>, <8 x double>* %$372, align 64
  %$378 = load <8 x double>, <8 x double>* %$374, align 64
  %$379 = mul i64 %$363, %".5"
  %$380 = getelementptr double, double* %$356, i64 %$379
  %$381 = load double, double* %$380, align 8
  %".66" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$381, i32 0
  %".67" = shufflevector <8 x double> %".66", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$382 = load <8 x double>, <8 x double>* %".49"
  %$383 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".67", <8 x double> %$375, <8 x double> %$382)
  store <8 x double> %$383, <8 x double>* %".49"
  %$384 = load <8 x double>, <8 x double>* %".50"
  %$385 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".67", <8 x double> %$376, <8 x double> %$384)
  store <8 x double> %$385, <8 x double>* %".50"
  %$386 = load <8 x double>, <8 x double>* %".51"
  %$387 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".67", <8 x double> %$377, <8 x double> %$386)
  store <8 x double> %$387, <8 x double>* %".51"
  %$388 = load <8 x double>, <8 x double>* %".52"
  %$389 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".67", <8 x double> %$378, <8 x double> %$388)
  store <8 x double> %$389, <8 x double>* %".52"
  %$390 = mul i64 %$363, %".5"
  %$391 = getelementptr double, double* %$358, i64 %$390
  %$392 = load double, double* %$391, align 8
  %".68" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$392, i32 0
  %".69" = shufflevector <8 x double> %".68", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$393 = load <8 x double>, <8 x double>* %".53"
  %$394 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".69", <8 x double> %$375, <8 x double> %$393)
  store <8 x double> %$394, <8 x double>* %".53"
  %$395 = load <8 x double>, <8 x double>* %".54"
  %$396 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".69", <8 x double> %$376, <8 x double> %$395)
  store <8 x double> %$396, <8 x double>* %".54"
  %$397 = load <8 x double>, <8 x double>* %".55"
  %$398 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".69", <8 x double> %$377, <8 x double> %$397)
  store <8 x double> %$398, <8 x double>* %".55"
  %$399 = load <8 x double>, <8 x double>* %".56"
  %$400 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".69", <8 x double> %$378, <8 x double> %$399)
  store <8 x double> %$400, <8 x double>* %".56"
  %$401 = mul i64 %$363, %".5"
  %$402 = getelementptr double, double* %$360, i64 %$401
  %$403 = load double, double* %$402, align 8
  %".70" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$403, i32 0
  %".71" = shufflevector <8 x double> %".70", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$404 = load <8 x double>, <8 x double>* %".57"
  %$405 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".71", <8 x double> %$375, <8 x double> %$404)
  store <8 x double> %$405, <8 x double>* %".57"
  %$406 = load <8 x double>, <8 x double>* %".58"
  %$407 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".71", <8 x double> %$376, <8 x double> %$406)
  store <8 x double> %$407, <8 x double>* %".58"
  %$408 = load <8 x double>, <8 x double>* %".59"
  %$409 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".71", <8 x double> %$377, <8 x double> %$408)
  store <8 x double> %$409, <8 x double>* %".59"
  %$410 = load <8 x double>, <8 x double>* %".60"
  %$411 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".71", <8 x double> %$378, <8 x double> %$410)
  store <8 x double> %$411, <8 x double>* %".60"
  %$412 = mul i64 %$363, %".5"
  %$413 = getelementptr double, double* %$362, i64 %$412
  %$414 = load double, double* %$413, align 8
  %".72" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$414, i32 0
  %".73" = shufflevector <8 x double> %".72", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$415 = load <8 x double>, <8 x double>* %".61"
  %$416 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".73", <8 x double> %$375, <8 x double> %$415)
  store <8 x double> %$416, <8 x double>* %".61"
  %$417 = load <8 x double>, <8 x double>* %".62"
  %$418 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".73", <8 x double> %$376, <8 x double> %$417)
  store <8 x double> %$418, <8 x double>* %".62"
  %$419 = load <8 x double>, <8 x double>* %".63"
  %$420 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".73", <8 x double> %$377, <8 x double> %$419)
  store <8 x double> %$420, <8 x double>* %".63"
  %$421 = load <8 x double>, <8 x double>* %".64"
  %$422 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".73", <8 x double> %$378, <8 x double> %$421)
  store <8 x double> %$422, <8 x double>* %".64"
  %$423 = add nsw i64 %$363, 1
  store i64 %$423, i64* %".65"
  br label %"head.1"
end.1:
  %$424 = icmp ne i64 %".8", 0
  br i1 %$424, label %"end.1.if", label %"end.1.endif"
end.1.if:
  %$425 = load <8 x double>, <8 x double>* %$294, align 8
  %$426 = load <8 x double>, <8 x double>* %".49"
  %$427 = fadd <8 x double> %$425, %$426
  store <8 x double> %$427, <8 x double>* %".49"
  %$428 = load <8 x double>, <8 x double>* %$296, align 8
  %$429 = load <8 x double>, <8 x double>* %".50"
  %$430 = fadd <8 x double> %$428, %$429
  store <8 x double> %$430, <8 x double>* %".50"
  %$431 = load <8 x double>, <8 x double>* %$298, align 8
  %$432 = load <8 x double>, <8 x double>* %".51"
  %$433 = fadd <8 x double> %$431, %$432
  store <8 x double> %$433, <8 x double>* %".51"
  %$434 = load <8 x double>, <8 x double>* %$300, align 8
  %$435 = load <8 x double>, <8 x double>* %".52"
  %$436 = fadd <8 x double> %$434, %$435
  store <8 x double> %$436, <8 x double>* %".52"
  %$437 = load <8 x double>, <8 x double>* %$304, align 8
  %$438 = load <8 x double>, <8 x double>* %".53"
  %$439 = fadd <8 x double> %$437, %$438
  store <8 x double> %$439, <8 x double>* %".53"
  %$440 = load <8 x double>, <8 x double>* %$306, align 8
  %$441 = load <8 x double>, <8 x double>* %".54"
  %$442 = fadd <8 x double> %$440, %$441
  store <8 x double> %$442, <8 x double>* %".54"
  %$443 = load <8 x double>, <8 x double>* %$308, align 8
  %$444 = load <8 x double>, <8 x double>* %".55"
  %$445 = fadd <8 x double> %$443, %$444
  store <8 x double> %$445, <8 x double>* %".55"
  %$446 = load <8 x double>, <8 x double>* %$310, align 8
  %$447 = load <8 x double>, <8 x double>* %".56"
  %$448 = fadd <8 x double> %$446, %$447
  store <8 x double> %$448, <8 x double>* %".56"
  %$449 = load <8 x double>, <8 x double>* %$314, align 8
  %$450 = load <8 x double>, <8 x double>* %".57"
  %$451 = fadd <8 x double> %$449, %$450
  store <8 x double> %$451, <8 x double>* %".57"
  %$452 = load <8 x double>, <8 x double>* %$316, align 8
  %$453 = load <8 x double>, <8 x double>* %".58"
  %$454 = fadd <8 x double> %$452, %$453
  store <8 x double> %$454, <8 x double>* %".58"
  %$455 = load <8 x double>, <8 x double>* %$318, align 8
  %$456 = load <8 x double>, <8 x double>* %".59"
  %$457 = fadd <8 x double> %$455, %$456
  store <8 x double> %$457, <8 x double>* %".59"
  %$458 = load <8 x double>, <8 x double>* %$320, align 8
  %$459 = load <8 x double>, <8 x double>* %".60"
  %$460 = fadd <8 x double> %$458, %$459
  store <8 x double> %$460, <8 x double>* %".60"
  %$461 = load <8 x double>, <8 x double>* %$324, align 8
  %$462 = load <8 x double>, <8 x double>* %".61"
  %$463 = fadd <8 x double> %$461, %$462
  store <8 x double> %$463, <8 x double>* %".61"
  %$464 = load <8 x double>, <8 x double>* %$326, align 8
  %$465 = load <8 x double>, <8 x double>* %".62"
  %$466 = fadd <8 x double> %$464, %$465
  store <8 x double> %$466, <8 x double>* %".62"
  %$467 = load <8 x double>, <8 x double>* %$328, align 8
  %$468 = load <8 x double>, <8 x double>* %".63"
  %$469 = fadd <8 x double> %$467, %$468
  store <8 x double> %$469, <8 x double>* %".63"
  %$470 = load <8 x double>, <8 x double>* %$330, align 8
  %$471 = load <8 x double>, <8 x double>* %".64"
  %$472 = fadd <8 x double> %$470, %$471
  store <8 x double> %$472, <8 x double>* %".64"
  br label %"end.1.endif"
end.1.endif:
  %$473 = load <8 x double>, <8 x double>* %".49"
  store <8 x double> %$473, <8 x double>* %$294, align 8
  %$474 = load <8 x double>, <8 x double>* %".50"
  store <8 x double> %$474, <8 x double>* %$296, align 8
  %$475 = load <8 x double>, <8 x double>* %".51"
  store <8 x double> %$475, <8 x double>* %$298, align 8
  %$476 = load <8 x double>, <8 x double>* %".52"
  store <8 x double> %$476, <8 x double>* %$300, align 8
  %$477 = load <8 x double>, <8 x double>* %".53"
  store <8 x double> %$477, <8 x double>* %$304, align 8
  %$478 = load <8 x double>, <8 x double>* %".54"
  store <8 x double> %$478, <8 x double>* %$306, align 8
  %$479 = load <8 x double>, <8 x double>* %".55"
  store <8 x double> %$479, <8 x double>* %$308, align 8
  %$480 = load <8 x double>, <8 x double>* %".56"
  store <8 x double> %$480, <8 x double>* %$310, align 8
  %$481 = load <8 x double>, <8 x double>* %".57"
  store <8 x double> %$481, <8 x double>* %$314, align 8
  %$482 = load <8 x double>, <8 x double>* %".58"
  store <8 x double> %$482, <8 x double>* %$316, align 8
  %$483 = load <8 x double>, <8 x double>* %".59"
  store <8 x double> %$483, <8 x double>* %$318, align 8
  %$484 = load <8 x double>, <8 x double>* %".60"
  store <8 x double> %$484, <8 x double>* %$320, align 8
  %$485 = load <8 x double>, <8 x double>* %".61"
  store <8 x double> %$485, <8 x double>* %$324, align 8
  %$486 = load <8 x double>, <8 x double>* %".62"
  store <8 x double> %$486, <8 x double>* %$326, align 8
  %$487 = load <8 x double>, <8 x double>* %".63"
  store <8 x double> %$487, <8 x double>* %$328, align 8
  %$488 = load <8 x double>, <8 x double>* %".64"
  store <8 x double> %$488, <8 x double>* %$330, align 8
  br label %".11.endif.endif"
.11.endif.endif.if:
  %$490 = mul i64 0, %".2"
  %$491 = getelementptr double, double* %".1", i64 %$490
  %$492 = getelementptr double, double* %$491, i64 0
  %$493 = bitcast double* %$492 to <8 x double>*
  %$494 = getelementptr double, double* %$491, i64 8
  %$495 = bitcast double* %$494 to <8 x double>*
  %$496 = getelementptr double, double* %$491, i64 16
  %$497 = bitcast double* %$496 to <8 x double>*
  %$498 = getelementptr double, double* %$491, i64 24
  %$499 = bitcast double* %$498 to <8 x double>*
  %$500 = mul i64 1, %".2"
  %$501 = getelementptr double, double* %".1", i64 %$500
  %$502 = getelementptr double, double* %$501, i64 0
  %$503 = bitcast double* %$502 to <8 x double>*
  %$504 = getelementptr double, double* %$501, i64 8
  %$505 = bitcast double* %$504 to <8 x double>*
  %$506 = getelementptr double, double* %$501, i64 16
  %$507 = bitcast double* %$506 to <8 x double>*
  %$508 = getelementptr double, double* %$501, i64 24
  %$509 = bitcast double* %$508 to <8 x double>*
  %$510 = getelementptr <8 x double>, <8 x double>* %$499, i32 1
  %$511 = bitcast <8 x double>* %$493 to i8*
  call void @"llvm.prefetch.p0"(i8* %$511, i32 1, i32 3, i32 1)
  %$512 = bitcast <8 x double>* %$495 to i8*
  call void @"llvm.prefetch.p0"(i8* %$512, i32 1, i32 3, i32 1)
  %$513 = bitcast <8 x double>* %$497 to i8*
  call void @"llvm.prefetch.p0"(i8* %$513, i32 1, i32 3, i32 1)
  %$514 = bitcast <8 x double>* %$499 to i8*
  call void @"llvm.prefetch.p0"(i8* %$514, i32 1, i32 3, i32 1)
  %$515 = bitcast <8 x double>* %$510 to i8*
  call void @"llvm.prefetch.p0"(i8* %$515, i32 1, i32 3, i32 1)
  %$516 = getelementptr <8 x double>, <8 x double>* %$509, i32 1
  %$517 = bitcast <8 x double>* %$503 to i8*
  call void @"llvm.prefetch.p0"(i8* %$517, i32 1, i32 3, i32 1)
  %$518 = bitcast <8 x double>* %$505 to i8*
  call void @"llvm.prefetch.p0"(i8* %$518, i32 1, i32 3, i32 1)
  %$519 = bitcast <8 x double>* %$507 to i8*
  call void @"llvm.prefetch.p0"(i8* %$519, i32 1, i32 3, i32 1)
  %$520 = bitcast <8 x double>* %$509 to i8*
  call void @"llvm.prefetch.p0"(i8* %$520, i32 1, i32 3, i32 1)
  %$521 = bitcast <8 x double>* %$516 to i8*
  call void @"llvm.prefetch.p0"(i8* %$521, i32 1, i32 3, i32 1)
  %$522 = mul i64 0, %".4"
  %$523 = getelementptr double, double* %".3", i64 %$522
  %$524 = mul i64 1, %".4"
  %$525 = getelementptr double, double* %".3", i64 %$524
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".74"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".75"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".76"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".77"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".78"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".79"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".80"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".81"
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
  %$528 = mul i64 %$526, 32
  %$529 = getelementptr double, double* %".6", i64 %$528
  %$530 = getelementptr double, double* %$529, i64 0
  %$531 = bitcast double* %$530 to <8 x double>*
  %$532 = getelementptr double, double* %$529, i64 8
  %$533 = bitcast double* %$532 to <8 x double>*
  %$534 = getelementptr double, double* %$529, i64 16
  %$535 = bitcast double* %$534 to <8 x double>*
  %$536 = getelementptr double, double* %$529, i64 24
  %$537 = bitcast double* %$536 to <8 x double>*
  %$538 = load <8 x double>, <8 x double>* %$531, align 64
  %$539 = load <8 x double>, <8 x double>* %$533, align 64
  %$540 = load <8 x double>, <8 x double>* %$535, align 64
  %$541 = load <8 x double>, <8 x double>* %$537, align 64
  %$542 = mul i64 %$526, %".5"
  %$543 = getelementptr double, double* %$523, i64 %$542
  %$544 = load double, double* %$543, align 8
  %".83" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$544, i32 0
  %".84" = shufflevector <8 x double> %".83", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$545 = load <8 x double>, <8 x double>* %".74"
  %$546 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".84", <8 x double> %$538, <8 x double> %$545)
  store <8 x double> %$546, <8 x double>* %".74"
  %$547 = load <8 x double>, <8 x double>* %".75"
  %$548 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".84", <8 x double> %$539, <8 x double> %$547)
  store <8 x double> %$548, <8 x double>* %".75"
  %$549 = load <8 x double>, <8 x double>* %".76"
  %$550 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".84", <8 x double> %$540, <8 x double> %$549)
  store <8 x double> %$550, <8 x double>* %".76"
  %$551 = load <8 x double>, <8 x double>* %".77"
  %$552 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".84", <8 x double> %$541, <8 x double> %$551)
  store <8 x double> %$552, <8 x double>* %".77"
  %$553 = mul i64 %$526, %".5"
  %$554 = getelementptr double, double* %$525, i64 %$553
  %$555 = load double, double* %$554, align 8
  %".85" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$555, i32 0
  %".86" = shufflevector <8 x double> %".85", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$556 = load <8 x double>, <8 x double>* %".78"
  %$557 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".86", <8 x double> %$538, <8 x double> %$556)
  store <8 x double> %$557, <8 x double>* %".78"
  %$558 = load <8 x double>, <8 x double>* %".79"
  %$559 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".86", <8 x double> %$539, <8 x double> %$558)
  store <8 x double> %$559, <8 x double>* %".79"
  %$560 = load <8 x double>, <8 x double>* %".80"
  %$561 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".86", <8 x double> %$540, <8 x double> %$560)
  store <8 x double> %$561, <8 x double>* %".80"
  %$562 = load <8 x double>, <8 x double>* %".81"
  %$563 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".86", <8 x double> %$541, <8 x double> %$562)
  store <8 x double> %$563, <8 x double>* %".81"
  %$564 = add nsw i64 %$526, 1
  store i64 %$564, i64* %".82"
  br label %"head.2"
end.2:
  %$565 = icmp ne i64 %".8", 0
  br i1 %$565, label %"end.2.if", label %"end.2.endif"
end.2.if:
  %$566 = load <8 x double>, <8 x double>* %$493, align 8
  %$567 = load <8 x double>, <8 x double>* %".74"
  %$568 = fadd <8 x double> %$566, %$567
  store <8 x double> %$568, <8 x double>* %".74"
  %$569 = load <8 x double>, <8 x double>* %$495, align 8
  %$570 = load <8 x double>, <8 x double>* %".75"
  %$571 = fadd <8 x double> %$569, %$570
  store <8 x double> %$571, <8 x double>* %".75"
  %$572 = load <8 x double>, <8 x double>* %$497, align 8
  %$573 = load <8 x double>, <8 x double>* %".76"
  %$574 = fadd <8 x double> %$572, %$573
  store <8 x double> %$574, <8 x double>* %".76"
  %$575 = load <8 x double>, <8 x double>* %$499, align 8
  %$576 = load <8 x double>, <8 x double>* %".77"
  %$577 = fadd <8 x double> %$575, %$576
  store <8 x double> %$577, <8 x double>* %".77"
  %$578 = load <8 x double>, <8 x double>* %$503, align 8
  %$579 = load <8 x double>, <8 x double>* %".78"
  %$580 = fadd <8 x double> %$578, %$579
  store <8 x double> %$580, <8 x double>* %".78"
  %$581 = load <8 x double>, <8 x double>* %$505, align 8
  %$582 = load <8 x double>, <8 x double>* %".79"
  %$583 = fadd <8 x double> %$581, %$582
  store <8 x double> %$583, <8 x double>* %".79"
  %$584 = load <8 x double>, <8 x double>* %$507, align 8
  %$585 = load <8 x double>, <8 x double>* %".80"
  %$586 = fadd <8 x double> %$584, %$585
  store <8 x double> %$586, <8 x double>* %".80"
  %$587 = load <8 x double>, <8 x double>* %$509, align 8
  %$588 = load <8 x double>, <8 x double>* %".81"
  %$589 = fadd <8 x double> %$587, %$588
  store <8 x double> %$589, <8 x double>* %".81"
  br label %"end.2.endif"
end.2.endif:
  %$590 = load <8 x double>, <8 x double>* %".74"
  store <8 x double> %$590, <8 x double>* %$493, align 8
  %$591 = load <8 x double>, <8 x double>* %".75"
  store <8 x double> %$591, <8 x double>* %$495, align 8
  %$592 = load <8 x double>, <8 x double>* %".76"
  store <8 x double> %$592, <8 x double>* %$497, align 8
  %$593 = load <8 x double>, <8 x double>* %".77"
  store <8 x double> %$593, <8 x double>* %$499, align 8
  %$594 = load <8 x double>, <8 x double>* %".78"
  store <8 x double> %$594, <8 x double>* %$503, align 8
  %$595 = load <8 x double>, <8 x double>* %".79"
  store <8 x double> %$595, <8 x double>* %$505, align 8
  %$596 = load <8 x double>, <8 x double>* %".80"
  store <8 x double> %$596, <8 x double>* %$507, align 8
  %$597 = load <8 x double>, <8 x double>* %".81"
  store <8 x double> %$597, <8 x double>* %$509, align 8
  br label %".11.endif.endif.endif"
.11.endif.endif.endif.if:
  %$599 = mul i64 0, %".2"
  %$600 = getelementptr double, double* %".1", i64 %$599
  %$601 = getelementptr double, double* %$600, i64 0
  %$602 = bitcast double* %$601 to <8 x double>*
  %$603 = getelementptr double, double* %$600, i64 8
  %$604 = bitcast double* %$603 to <8 x double>*
  %$605 = getelementptr double, double* %$600, i64 16
  %$606 = bitcast double* %$605 to <8 x double>*
  %$607 = getelementptr double, double* %$600, i64 24
  %$608 = bitcast double* %$607 to <8 x double>*
  %$609 = getelementptr <8 x double>, <8 x double>* %$608, i32 1
  %$610 = bitcast <8 x double>* %$602 to i8*
  call void @"llvm.prefetch.p0"(i8* %$610, i32 1, i32 3, i32 1)
  %$611 = bitcast <8 x double>* %$604 to i8*
  call void @"llvm.prefetch.p0"(i8* %$611, i32 1, i32 3, i32 1)
  %$612 = bitcast <8 x double>* %$606 to i8*
  call void @"llvm.prefetch.p0"(i8* %$612, i32 1, i32 3, i32 1)
  %$613 = bitcast <8 x double>* %$608 to i8*
  call void @"llvm.prefetch.p0"(i8* %$613, i32 1, i32 3, i32 1)
  %$614 = bitcast <8 x double>* %$609 to i8*
  call void @"llvm.prefetch.p0"(i8* %$614, i32 1, i32 3, i32 1)
  %$615 = mul i64 0, %".4"
  %$616 = getelementptr double, double* %".3", i64 %$615
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".87"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".88"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".89"
  store <8 x double> <double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0, double 0.0>, <8 x double>* %".90"
  store i64 0, i64* %".91"
  br label %"head.3"
.11.endif.endif.endif.endif:
  ret void
head.3:
  %$617 = load i64, i64* %".91"
  %$618 = icmp slt i64 %$617, %".7"
  br i1 %$618, label %"body.3", label %"end.3"
body.3:
  %$619 = mul i64 %$617, 32
  %$620 = getelementptr double, double* %".6", i64 %$619
  %$621 = getelementptr double, double* %$620, i64 0
  %$622 = bitcast double* %$621 to <8 x double>*
  %$623 = getelementptr double, double* %$620, i64 8
  %$624 = bitcast double* %$623 to <8 x double>*
  %$625 = getelementptr double, double* %$620, i64 16
  %$626 = bitcast double* %$625 to <8 x double>*
  %$627 = getelementptr double, double* %$620, i64 24
  %$628 = bitcast double* %$627 to <8 x double>*
  %$629 = load <8 x double>, <8 x double>* %$622, align 64
  %$630 = load <8 x double>, <8 x double>* %$624, align 64
  %$631 = load <8 x double>, <8 x double>* %$626, align 64
  %$632 = load <8 x double>, <8 x double>* %$628, align 64
  %$633 = mul i64 %$617, %".5"
  %$634 = getelementptr double, double* %$616, i64 %$633
  %$635 = load double, double* %$634, align 8
  %".92" = insertelement <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, double %$635, i32 0
  %".93" = shufflevector <8 x double> %".92", <8 x double> <double undef, double undef, double undef, double undef, double undef, double undef, double undef, double undef>, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %$636 = load <8 x double>, <8 x double>* %".87"
  %$637 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".93", <8 x double> %$629, <8 x double> %$636)
  store <8 x double> %$637, <8 x double>* %".87"
  %$638 = load <8 x double>, <8 x double>* %".88"
  %$639 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".93", <8 x double> %$630, <8 x double> %$638)
  store <8 x double> %$639, <8 x double>* %".88"
  %$640 = load <8 x double>, <8 x double>* %".89"
  %$641 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".93", <8 x double> %$631, <8 x double> %$640)
  store <8 x double> %$641, <8 x double>* %".89"
  %$642 = load <8 x double>, <8 x double>* %".90"
  %$643 = call <8 x double> @"llvm.fma.v8f64"(<8 x double> %".93", <8 x double> %$632, <8 x double> %$642)
  store <8 x double> %$643, <8 x double>* %".90"
  %$644 = add nsw i64 %$617, 1
  store i64 %$644, i64* %".91"
  br label %"head.3"
end.3:
  %$645 = icmp ne i64 %".8", 0
  br i1 %$645, label %"end.3.if", label %"end.3.endif"
end.3.if:
  %$646 = load <8 x double>, <8 x double>* %$602, align 8
  %$647 = load <8 x double>, <8 x double>* %".87"
  %$648 = fadd <8 x double> %$646, %$647
  store <8 x double> %$648, <8 x double>* %".87"
  %$649 = load <8 x double>, <8 x double>* %$604, align 8
  %$650 = load <8 x double>, <8 x double>* %".88"
  %$651 = fadd <8 x double> %$649, %$650
  store <8 x double> %$651, <8 x double>* %".88"
  %$652 = load <8 x double>, <8 x double>* %$606, align 8
  %$653 = load <8 x double>, <8 x double>* %".89"
  %$654 = fadd <8 x double> %$652, %$653
  store <8 x double> %$654, <8 x double>* %".89"
  %$655 = load <8 x double>, <8 x double>* %$608, align 8
  %$656 = load <8 x double>, <8 x double>* %".90"
  %$657 = fadd <8 x double> %$655, %$656
  store <8 x double> %$657, <8 x double>* %".90"
  br label %"end.3.endif"
end.3.endif:
  %$658 = load <8 x double>, <8 x double>* %".87"
  store <8 x double> %$658, <8 x double>* %$602, align 8
  %$659 = load <8 x double>, <8 x double>* %".88"
  store <8 x double> %$659, <8 x double>* %$604, align 8
  %$660 = load <8 x double>, <8 x double>* %".89"
  store <8 x double> %$660, <8 x double>* %$606, align 8
  %$661 = load <8 x double>, <8 x double>* %".90"
  store <8 x double> %$661, <8 x double>* %$608, align 8
  br label %".11.endif.endif.endif.endif"
}

declare <8 x double> @"llvm.fma.v8f64"(<8 x double> %".1", <8 x double> %".2", <8 x double> %".3")

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
