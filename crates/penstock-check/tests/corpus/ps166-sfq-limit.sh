#!/bin/sh
# no rate is known, so how long the queue lasts is not known either
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root sfq perturb 10 limit 60000
# expect: PS166 4
