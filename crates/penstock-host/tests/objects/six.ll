; As an action: drops UDP over IPv6 to the port 53, leaves all else to the default.
target triple = "bpf"
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @six(i8* %skb) section "action" {
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
  %limit62 = getelementptr i8, i8* %data, i64 62
  %short62 = icmp ugt i8* %limit62, %end
  br i1 %short62, label %out, label %long
long:
  %type.p = getelementptr i8, i8* %data, i64 12
  %type.q = bitcast i8* %type.p to i16*
  %type = load i16, i16* %type.q, align 1
  %next.p = getelementptr i8, i8* %data, i64 20
  %next.q = bitcast i8* %next.p to i8*
  %next = load i8, i8* %next.q, align 1
  %dport.p = getelementptr i8, i8* %data, i64 56
  %dport.q = bitcast i8* %dport.p to i16*
  %dport = load i16, i16* %dport.q, align 1
  %ip = icmp eq i16 %type, -8826
  %udp = icmp eq i8 %next, 17
  %dns = icmp eq i16 %dport, 13568
  %a = and i1 %ip, %udp
  %b = and i1 %a, %dns
  %said = select i1 %b, i32 2, i32 -1
  ret i32 %said
out:
  ret i32 -1
}
