#!/bin/bash
# expect: PS312 5
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip dst 192.0.2.80/32 match ip protocol 6 0xff action pedit munge ip dst set 10.1.1.5 pipe action csum ip4h
tc filter add dev eth0 parent ffff: protocol ip prio 2 u32 match ip dst 192.0.2.81/32 match ip protocol 6 0xff action pedit munge ip dst set 10.1.1.5 pipe action csum ip4h and tcp
