#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq perturb 10ms
# expect: PS001 3
