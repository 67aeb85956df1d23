#!/bin/bash
# expect: PS001 6
DEV=eth0
cat > /run/shape.batch <<EOF
qdisc replace dev $DEV root handle 1: htb default 20
tc class add dev $DEV parent 1: classid 1:20 htb rate 40mbit
EOF
tc -batch /run/shape.batch
