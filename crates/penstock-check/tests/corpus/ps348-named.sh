#!/bin/bash
# expect: PS348 5
start() { tc qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 32kb latency 50ms; }
stop() { tc qdisc del dev eth0 root; }
restart() { start; }
"$1"
