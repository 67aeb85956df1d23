#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root tbf rate 5mbit burst 16kb latency 50ms
