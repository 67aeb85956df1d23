#!/usr/bin/env bash
# All rates follow from the line's.
LINE_KBIT=${LINE_KBIT:-50000}
pct() { echo $(( LINE_KBIT * $1 / 100 )); }
D=eth0
tc qdisc replace dev $D root handle 1: htb default 30 r2q 100
tc class replace dev $D parent 1: classid 1:1 htb rate "$(pct 95)kbit" burst 64k cburst 64k
tc class replace dev $D parent 1:1 classid 1:10 htb rate "$(pct 20)kbit" ceil "$(pct 95)kbit" prio 1
tc class replace dev $D parent 1:1 classid 1:20 htb rate "$(pct 45)kbit" ceil "$(pct 95)kbit" prio 2
tc class replace dev $D parent 1:1 classid 1:30 htb rate "$(pct 30)kbit" ceil "$(pct 95)kbit" prio 3
for leaf in 1:{10,20,30}; do tc qdisc replace dev $D parent $leaf fq_codel; done
