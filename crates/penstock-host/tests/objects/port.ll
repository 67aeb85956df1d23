; TCP over IPv4 goes to class 1:10 by destination port 80, to 1:20 by any other; all else to nobody.
target triple = "bpf"
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @port(i8* %skb) section "classifier" {
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
  %limit54 = getelementptr i8, i8* %data, i64 54
  %short54 = icmp ugt i8* %limit54, %end
  br i1 %short54, label %out, label %long
long:
  %type.p = getelementptr i8, i8* %data, i64 12
  %type.q = bitcast i8* %type.p to i16*
  %type = load i16, i16* %type.q, align 1
  %proto.p = getelementptr i8, i8* %data, i64 23
  %proto.q = bitcast i8* %proto.p to i8*
  %proto = load i8, i8* %proto.q, align 1
  %dport.p = getelementptr i8, i8* %data, i64 36
  %dport.q = bitcast i8* %dport.p to i16*
  %dport = load i16, i16* %dport.q, align 1
  %ip = icmp eq i16 %type, 8
  %tcp = icmp eq i8 %proto, 6
  %both = and i1 %ip, %tcp
  br i1 %both, label %which, label %out
which:
  %web = icmp eq i16 %dport, 20480
  %class = select i1 %web, i32 65552, i32 65568
  ret i32 %class
out:
  ret i32 0
}
