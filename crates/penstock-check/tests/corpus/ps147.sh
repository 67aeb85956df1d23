#!/bin/bash
# sfq that mixes every second
# expect: PS147 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq perturb 1
