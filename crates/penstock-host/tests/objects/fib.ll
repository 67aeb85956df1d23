; Asks for a route, which is not simulated.
target triple = "bpf"
@_license = dso_local global [4 x i8] c"GPL\00", section "license", align 1

define dso_local i32 @fib(i8* %skb) section "classifier" {
  %room = alloca [64 x i8], align 8
  %p = bitcast [64 x i8]* %room to i8*
  call void @llvm.memset.p0i8.i64(i8* align 8 %p, i8 0, i64 64, i1 false)
  %helper = inttoptr i64 69 to i64 (i8*, i8*, i32, i32)*
  %said.w = call i64 %helper(i8* %skb, i8* %p, i32 64, i32 0)
  ret i32 0
}
declare void @llvm.memset.p0i8.i64(i8*, i8, i64, i1)
