; Reads beyond the packet without asking how long it is: refused.
target triple = "bpf"
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @bare(i8* %skb) section "classifier" {
  %data.w.p = getelementptr i8, i8* %skb, i64 76
  %data.w.q = bitcast i8* %data.w.p to i32*
  %data.w = load i32, i32* %data.w.q
  %data.z = zext i32 %data.w to i64
  %data = inttoptr i64 %data.z to i8*
  %proto.p = getelementptr i8, i8* %data, i64 2000
  %proto.q = bitcast i8* %proto.p to i8*
  %proto = load i8, i8* %proto.q, align 1
  %said = zext i8 %proto to i32
  ret i32 %said
}
