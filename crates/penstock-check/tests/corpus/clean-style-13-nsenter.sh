#!/bin/bash
# Slows a container down by its own network namespace.
name=${1:-web}
pid=$(docker inspect --format '{{.State.Pid}}' "$name") || exit 1
nsenter -t "$pid" -n tc qdisc replace dev eth0 root netem delay 100ms 10ms distribution normal loss 0.5%
nsenter -t "$pid" -n tc -s qdisc show dev eth0
