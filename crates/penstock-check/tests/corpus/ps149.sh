#!/bin/bash
# sfq with a small quantum
# expect: PS149 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq perturb 10 quantum 500
