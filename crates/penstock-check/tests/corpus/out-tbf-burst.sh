#!/bin/bash
# burst 1540 at a gigabit
# expect: PS120 5
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 1gbit burst 1540 latency 50ms
