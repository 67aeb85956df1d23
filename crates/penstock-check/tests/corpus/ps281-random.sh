#!/bin/bash
# expect: PS281 4
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root netem loss random 0.5 duplicate 1%
