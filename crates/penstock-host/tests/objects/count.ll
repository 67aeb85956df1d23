; Drops every fourth packet: a counter in an array.
target triple = "bpf"
%map = type { [2 x i32]*, i32*, i64*, [1 x i32]* }
@seen = dso_local global %map zeroinitializer, section ".maps", align 8, !dbg !0
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @count(i8* %skb) section "classifier" !dbg !30 {
  %key = alloca i32, align 4
  store i32 0, i32* %key
  %k = bitcast i32* %key to i8*
  %m = bitcast %map* @seen to i8*
  %lookup = inttoptr i64 1 to i8* (i8*, i8*)*
  %v = call i8* %lookup(i8* %m, i8* %k)
  %none = icmp eq i8* %v, null
  br i1 %none, label %out, label %hit
hit:
  %p = bitcast i8* %v to i64*
  %old = load i64, i64* %p
  %new = add i64 %old, 1
  store i64 %new, i64* %p
  %rest = and i64 %new, 3
  %fourth = icmp eq i64 %rest, 0
  %said = select i1 %fourth, i32 2, i32 0
  ret i32 %said
out:
  ret i32 0
}

; The map's types, from which llc makes BTF: __uint(type, 2); __type(key, __u32); __type(value, __u64); __uint(max_entries, 1).
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!20, !21}
!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "seen", scope: !2, file: !3, line: 1, type: !5, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !4)
!3 = !DIFile(filename: "count.ll", directory: "")
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
!15 = !DICompositeType(tag: DW_TAG_array_type, baseType: !19, size: 64, elements: !{!DISubrange(count: 2)})
!16 = !DICompositeType(tag: DW_TAG_array_type, baseType: !19, size: 32, elements: !{!DISubrange(count: 1)})
!17 = !DIBasicType(name: "unsigned int", size: 32, encoding: DW_ATE_unsigned)
!18 = !DIBasicType(name: "unsigned long", size: 64, encoding: DW_ATE_unsigned)
!19 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!20 = !{i32 2, !"Debug Info Version", i32 3}
!21 = !{i32 7, !"Dwarf Version", i32 4}
!30 = distinct !DISubprogram(name: "count", scope: !3, file: !3, line: 1, type: !31, unit: !2, spFlags: DISPFlagDefinition)
!31 = !DISubroutineType(types: !32)
!32 = !{!19}
