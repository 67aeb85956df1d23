; The firewall mark is the DSCP of IPv4.
target triple = "bpf"
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @dscp(i8* %skb) section "classifier" {
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
  %tos.p = getelementptr i8, i8* %data, i64 15
  %tos.q = bitcast i8* %tos.p to i8*
  %tos = load i8, i8* %tos.q, align 1
  %ip = icmp eq i16 %type, 8
  br i1 %ip, label %set, label %out
set:
  %dscp.b = lshr i8 %tos, 2
  %dscp = zext i8 %dscp.b to i32
  %mark.p = getelementptr i8, i8* %skb, i64 8
  %mark = bitcast i8* %mark.p to i32*
  store i32 %dscp, i32* %mark
  ret i32 0
out:
  ret i32 0
}
