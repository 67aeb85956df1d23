A=1; B=; echo ${A:+set} ${B:-empty} ${B-notempty} ${C=def} $C ${#A}; 
foo() { local x=$1; [ "$x" = 0 ] && return; echo $x; foo $((x-1)); }; foo 3
bar() { echo "in $FUNCNAME"; }; bar
IFS=$'\n'; for l in $(printf 'a b\nc d\n'); do echo "<$l>"; done; unset IFS
n=$(printf 'a\nb\n' | grep -c .); echo $n
echo a b c | (read x y z; echo $z)
grep -E '^(a|b)' <<< "apple" ; grep -o '[0-9]\+' <<< 'rate 100 ceil 200' | head -1; grep -v x <<< y; echo foo | grep -qi FOO && echo ci
sort -n <<< $'10\n9\n2' | head -1; sort -t: -k2 -n <<< $'a:3\nb:1'
awk -v r=5 'BEGIN{printf "%d %s\n", r*2, substr("hello",2,3)}'; awk 'BEGIN { x["a"]=1; if ("a" in x) print "yes"; split("a,b",y,","); print y[2]; print length("abc"), toupper("x"), index("abc","c"); print int(7/2) }'
echo "k: v" | awk '/^k/ {gsub(/v/,"w"); print $2; exit}'; echo 'a.b.c' | awk -F. '{print $NF}'
