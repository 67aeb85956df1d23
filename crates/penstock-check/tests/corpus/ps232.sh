#!/bin/bash
# ingress without a filter
# expect: PS232 5
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
