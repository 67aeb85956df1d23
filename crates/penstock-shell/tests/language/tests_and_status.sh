[ -z "" -a -n "x" ] && echo ok; [[ "eth0" =~ ^eth([0-9]+)$ ]] && echo "m ${BASH_REMATCH[1]}"; [[ a == a* ]] && echo glob; [ 3 -gt 2 ] && echo gt; test -d /tmp && echo dir; if [ "a" != "b" ] || false; then echo ne; fi
until [ ${k:=0} -ge 2 ]; do k=$((k+1)); echo k$k; done
select_none() { return 5; }; select_none; echo $?
{ echo out; echo err >&2; } 2>/dev/null
echo x 1>&2 2>/dev/null | cat
func() { echo "args: $@ $#"; shift; echo "$1"; }; func a b c
