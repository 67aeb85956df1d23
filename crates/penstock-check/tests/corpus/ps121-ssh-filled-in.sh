#!/bin/bash
# expect: PS121 6
for h in a b; do
  RATE=10mbit
  ssh -T "$h" <<EOF
    sudo tc qdisc replace dev eth0 root tbf rate $RATE burst 1000 latency 50ms
EOF
done
