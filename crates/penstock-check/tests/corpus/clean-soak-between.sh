#!/bin/bash
# slow down the loopback for the soak test, then add loss
set -x
tc qdisc del dev lo root || true
tc qdisc add dev lo root netem delay 20ms 2ms distribution normal limit 5000
./run_soak --phase one
tc qdisc change dev lo root netem delay 20ms 2ms loss 1% limit 5000
./run_soak --phase two
tc qdisc del dev lo root
