#!/bin/bash
# expect: PS162 4
D=eth0
su -c "tc qdisc replace dev $D root netem delay 5 limit 2000"
