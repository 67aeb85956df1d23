#!/bin/bash
# dsmark
# expect: PS006 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 handle 1:0 root dsmark indices 64 default_index 0
