; Another destination, 10.0.0.9 port 8080, for TCP over IPv4, with both checksums; the answer is the TTL as skb_load_bytes_relative has it.
target triple = "bpf"
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @nat(i8* %skb) section "classifier" {
  %old = alloca i32, align 4
  %new = alloca i32, align 4
  %ports = alloca i16, align 2
  %newport = alloca i16, align 2
  %ttl = alloca i8, align 1
  %o = bitcast i32* %old to i8*
  %n = bitcast i32* %new to i8*
  %p = bitcast i16* %ports to i8*
  %np = bitcast i16* %newport to i8*
  store i32 150994954, i32* %new
  store i16 -28641, i16* %newport
  %load = inttoptr i64 26 to i64 (i8*, i32, i8*, i32)*
  %store = inttoptr i64 9 to i64 (i8*, i32, i8*, i32, i64)*
  %l3 = inttoptr i64 10 to i64 (i8*, i32, i64, i64, i64)*
  %l4 = inttoptr i64 11 to i64 (i8*, i32, i64, i64, i64)*
  %relative = inttoptr i64 68 to i64 (i8*, i32, i8*, i32, i32)*
  %r1 = call i64 %load(i8* %skb, i32 30, i8* %o, i32 4)
  %r2 = call i64 %load(i8* %skb, i32 36, i8* %p, i32 2)
  %was = load i32, i32* %old
  %was.z = zext i32 %was to i64
  %wasp = load i16, i16* %ports
  %wasp.z = zext i16 %wasp to i64
  %r3 = call i64 %l4(i8* %skb, i32 50, i64 %was.z, i64 150994954, i64 20)
  %r4 = call i64 %l4(i8* %skb, i32 50, i64 %wasp.z, i64 36895, i64 2)
  %r5 = call i64 %l3(i8* %skb, i32 24, i64 %was.z, i64 150994954, i64 4)
  %r6 = call i64 %store(i8* %skb, i32 30, i8* %n, i32 4, i64 0)
  %r7 = call i64 %store(i8* %skb, i32 36, i8* %np, i32 2, i64 0)
  %r8 = call i64 %relative(i8* %skb, i32 8, i8* %ttl, i32 1, i32 1)
  %t = load i8, i8* %ttl
  %said = zext i8 %t to i32
  ret i32 %said
}
