; Earliest departure times: each IPv4 destination gets 10 Mbit/s. fq holds packets back until their time; who would wait more than 2 s is dropped.
target triple = "bpf"
%map = type { [1 x i32]*, i32*, i64*, [65536 x i32]* }
@next = dso_local global %map zeroinitializer, section ".maps", align 8, !dbg !0
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @pace(i8* %skb) section "edt" !dbg !30 {
  %key = alloca i32, align 4
  %fresh = alloca i64, align 8
  %data.w.p = getelementptr i8, i8* %skb, i64 76
  %data.w.q = bitcast i8* %data.w.p to i32*
  %data.w = load i32, i32* %data.w.q
  %end.w.p = getelementptr i8, i8* %skb, i64 80
  %end.w.q = bitcast i8* %end.w.p to i32*
  %end.w = load i32, i32* %end.w.q
  %data.z = zext i32 %data.w to i64
  %end.z = zext i32 %end.w to i64
  %data = inttoptr i64 %data.z to i8*
  %end = inttoptr i64 %end.z to i8*
  %limit34 = getelementptr i8, i8* %data, i64 34
  %short34 = icmp ugt i8* %limit34, %end
  br i1 %short34, label %out, label %long
long:
  %type.p = getelementptr i8, i8* %data, i64 12
  %type.q = bitcast i8* %type.p to i16*
  %type = load i16, i16* %type.q, align 1
  %dst.p = getelementptr i8, i8* %data, i64 30
  %dst.q = bitcast i8* %dst.p to i32*
  %dst = load i32, i32* %dst.q, align 1
  %ip = icmp eq i16 %type, 8
  br i1 %ip, label %go, label %out
go:
  %len.p = getelementptr i8, i8* %skb, i64 160
  %len.q = bitcast i8* %len.p to i32*
  %len = load i32, i32* %len.q
  %len.z = zext i32 %len to i64
  %delay = mul i64 %len.z, 800
  %ktime = inttoptr i64 5 to i64 ()*
  %now = call i64 %ktime()
  %asked.p = getelementptr i8, i8* %skb, i64 152
  %asked.q = bitcast i8* %asked.p to i64*
  %asked = load i64, i64* %asked.q
  %later = icmp ugt i64 %asked, %now
  %t = select i1 %later, i64 %asked, i64 %now
  store i32 %dst, i32* %key
  %k = bitcast i32* %key to i8*
  %m = bitcast %map* @next to i8*
  %lookup = inttoptr i64 1 to i8* (i8*, i8*)*
  %v = call i8* %lookup(i8* %m, i8* %k)
  %none = icmp eq i8* %v, null
  %end1 = add i64 %t, %delay
  br i1 %none, label %new, label %known
new:
  store i64 %end1, i64* %fresh
  %f = bitcast i64* %fresh to i8*
  %update = inttoptr i64 2 to i64 (i8*, i8*, i8*, i64)*
  %u = call i64 %update(i8* %m, i8* %k, i8* %f, i64 0)
  ret i32 0
known:
  %p = bitcast i8* %v to i64*
  %next = load i64, i64* %p
  %free = icmp ule i64 %next, %t
  br i1 %free, label %at_once, label %wait
at_once:
  store i64 %end1, i64* %p
  ret i32 0
wait:
  %waits = sub i64 %next, %now
  %long2 = icmp ugt i64 %waits, 2000000000
  br i1 %long2, label %drop, label %hold
hold:
  %end2 = add i64 %next, %delay
  store i64 %end2, i64* %p
  store i64 %next, i64* %asked.q
  ret i32 0
drop:
  ret i32 2
out:
  ret i32 0
}

; The map's types, from which llc makes BTF: __uint(type, 1); __type(key, __u32); __type(value, __u64); __uint(max_entries, 65536).
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!20, !21}
!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "next", scope: !2, file: !3, line: 1, type: !5, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !4)
!3 = !DIFile(filename: "edt.ll", directory: "")
!4 = !{!0}
!5 = distinct !DICompositeType(tag: DW_TAG_structure_type, file: !3, size: 256, elements: !6)
!6 = !{!7, !8, !9, !10}
!7 = !DIDerivedType(tag: DW_TAG_member, name: "type", scope: !5, file: !3, baseType: !11, size: 64)
!8 = !DIDerivedType(tag: DW_TAG_member, name: "key", scope: !5, file: !3, baseType: !12, size: 64, offset: 64)
!9 = !DIDerivedType(tag: DW_TAG_member, name: "value", scope: !5, file: !3, baseType: !13, size: 64, offset: 128)
!10 = !DIDerivedType(tag: DW_TAG_member, name: "max_entries", scope: !5, file: !3, baseType: !14, size: 64, offset: 192)
!11 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !15, size: 64)
!12 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !17, size: 64)
!13 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !18, size: 64)
!14 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !16, size: 64)
!15 = !DICompositeType(tag: DW_TAG_array_type, baseType: !19, size: 32, elements: !{!DISubrange(count: 1)})
!16 = !DICompositeType(tag: DW_TAG_array_type, baseType: !19, size: 2097152, elements: !{!DISubrange(count: 65536)})
!17 = !DIBasicType(name: "unsigned int", size: 32, encoding: DW_ATE_unsigned)
!18 = !DIBasicType(name: "unsigned long", size: 64, encoding: DW_ATE_unsigned)
!19 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!20 = !{i32 2, !"Debug Info Version", i32 3}
!21 = !{i32 7, !"Dwarf Version", i32 4}
!30 = distinct !DISubprogram(name: "pace", scope: !3, file: !3, line: 1, type: !31, unit: !2, spFlags: DISPFlagDefinition)
!31 = !DISubroutineType(types: !32)
!32 = !{!19}
