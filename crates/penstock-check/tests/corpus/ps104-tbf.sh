#!/bin/bash
# tbf above the link
# with: --rate 10mbit
# expect: PS104 6
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 12mbit burst 20k latency 50ms
