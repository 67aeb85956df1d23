#!/bin/bash
UP=500mbit
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate $UP burst 10kb latency 20ms
# expect: PS120 4
