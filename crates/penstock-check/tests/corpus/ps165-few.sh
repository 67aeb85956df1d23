#!/bin/bash
# expect: PS165 4
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq limit 4 perturb 10
