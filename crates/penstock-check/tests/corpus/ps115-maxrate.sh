#!/bin/bash
# expect: PS115 4
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root fq maxrate 100
