#!/bin/bash
# expect: PS162 5
D=eth0
su -c "tc qdisc replace dev $D root netem delay 5ms limit 2000"
timeout 5 bash -c "tc qdisc replace dev $D root netem delay 5 limit 2000"
