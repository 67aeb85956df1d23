#!/bin/bash
# Odd corners that scripts depend on.
unset -v NOT; echo "${NOT-unset} ${NOT:-empty}"
NOT=; echo "${NOT-unset} ${NOT:-empty}"
f() { echo "f: $# $FUNCNAME ${BASH_LINENO[0]}"; }; f a b
g() { return; }; false; g; echo "g: $?"
x=5; x+=5; echo $x; declare -i y=5; y+=5; echo $y
s=abcdef; echo ${s:1:3} ${s: -2} ${s#*c} ${s%d*} ${s//[aeiou]/_}
a=(1 2 3); a+=(4); unset 'a[1]'; echo "${a[@]}" "${#a[@]}" "${!a[@]}" "${a[@]:1:2}"
echo "${a[*]/#/-}"
printf '%s\n' "${@:-no arguments}"
readonly R=1; (R=2) 2>/dev/null || echo "readonly"
( exit 5 ); echo "$?"
echo a | while read -r l; do v=$l; done; echo "v=${v:-lost}"
i=0; while ((i < 3)); do ((i++)); if ((i == 2)); then continue; fi; printf '%d ' $i; done; echo
for ((;;)); do break; done
select_none() { for x; do printf '[%s]' "$x"; done; echo; }; select_none "a b" c
case "a.b" in *.*) echo dotted ;;& a*) echo "begins with a" ;; esac
[[ abc < abd && -z "" && ! -e /none ]] && echo compare
[[ "10" -eq 0xa ]] && echo hex
echo $((10#08 + 1)) $((16#ff)) $((1 << 4 | 1)) $((~0)) $((5 % 3)) $((-7 / 2))
(( z = 3, z *= 2 )); echo $z
let "w = 2 ** 8"; echo $w
echo "${PWD##*/}"
command -v f; type -t f; type -t tc >/dev/null && echo "tc is found"
true; echo "last: $_"
exec 5<<< "from five"; read -r line <&5; echo "$line"
tc qdisc add dev eth0 root sfq 2>&1 | tee /tmp/log | wc -c
cat /tmp/log
