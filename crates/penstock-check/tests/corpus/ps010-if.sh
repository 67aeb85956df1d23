#!/bin/bash
# expect: PS010 4
IF=eth0
if [$IF = eth0 ]; then
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq_codel
fi
