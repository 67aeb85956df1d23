#!/bin/bash
# Words, splitting, globs and quotes around tc.
DEV="eth0"
OPTS="limit 100 perturb 5"
tc qdisc add dev "$DEV" root sfq "$OPTS" || echo "one word"
tc qdisc add dev "$DEV" root sfq $OPTS && echo "two options"
args=(dev "$DEV" root)
tc qdisc del "${args[@]}"
IFS=:; set -- $PATH; IFS=' '; echo $#
a="x   y"; echo $a "$a"
printf '<%s>' $a "$a" ""; echo
set -f; echo *.conf; set +f
echo *.conf
cd /etc/iproute2 2>/dev/null; cd - >/dev/null
echo "a\tb" 'c\td' $'e\tf'
echo -e "a\tb\n\"q\""
echo "${DEV}1 $DEV1 ${DEV:+set}"
v='$(tc qdisc show)'; echo "$v"
eval "echo \"\$DEV\" '$DEV'"
cat <<E1; cat <<'E2'
$DEV \$DEV $((1 + 1)) "quoted"
E1
$DEV \$DEV $((1 + 1)) "quoted"
E2
echo {a,b}{1..3} {eth0,eth1}:up "{not,this}"
echo "lines: $(printf 'a\nb\n\n' | wc -l) [$(printf 'a\n\n')]"
nothing=; [ -z $nothing ] && echo empty; [ -n "$nothing" ] || echo "still empty"
