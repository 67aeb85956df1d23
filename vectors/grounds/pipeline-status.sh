#!/bin/bash
# What a status is, and who sees it.
tc qdisc del dev eth0 root 2>/dev/null | cat
echo "1: $? ${PIPESTATUS[@]}"
set -o pipefail
tc qdisc del dev eth0 root 2>/dev/null | cat
echo "2: $?"
if tc qdisc show dev eth0 | grep -q nosuch; then echo found; else echo "3: $?"; fi
x=$(tc qdisc del dev eth0 root 2>&1); echo "4: $? $x"
local_status() { local y=$(false); echo "5: $?"; local z; z=$(false); echo "6: $?"; }
local_status
! true; echo "7: $?"
! tc qdisc del dev eth0 root 2>/dev/null; echo "8: $?"
true && false || echo "9: $?"
(exit 3) || (exit 4) || echo "10: $?"
while false; do :; done; echo "11: $?"
for i in; do :; done; echo "12: $?"
case x in y) ;; esac; echo "13: $?"
{ false; true; } && echo "14: $?"
eval 'exit_code() { return 300; }'; exit_code; echo "15: $?"
tc qdisc add dev eth0 root sfq && tc qdisc add dev eth0 root sfq || echo "16: $?"
[ -d /nowhere ]; echo "17: $?"
[[ a == b ]]; echo "18: $?"
((0)); echo "19: $?"
ip link show eth0 | grep -c mtu && exit 9
