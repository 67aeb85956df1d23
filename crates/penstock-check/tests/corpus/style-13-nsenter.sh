#!/bin/bash
# expect: PS162 5
# expect: PS001 6
pid=$(docker inspect --format '{{.State.Pid}}' web) || exit 1
nsenter -t "$pid" -n tc qdisc replace dev eth0 root netem delay 100
nsenter -t "$pid" -n tc qdisc replace dev eth1 root netem delay 100ms lsos 1%
