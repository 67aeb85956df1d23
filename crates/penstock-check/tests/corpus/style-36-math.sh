#!/usr/bin/env bash
# expect: PS101 8
# expect: PS015 9
LINE_KBIT=50000
pct() { echo $(( LINE_KBIT * $1 / 100 )); }
D=eth0
tc qdisc replace dev $D root handle 1: htb default 30 r2q 100; tc class replace dev $D parent 1: classid 1:1 htb rate "$(pct 95)kbit"
tc class replace dev $D parent 1:1 classid 1:10 htb rate "$(pct 65)kbit" ceil "$(pct 95)kbit"; tc class replace dev $D parent 1:1 classid 1:30 htb rate "$(pct 45)kbit" ceil "$(pct 95)kbit"
tc qdisc replace dev $D parent 1:30 fq_codel limit $((LINE_KBT / 10))
