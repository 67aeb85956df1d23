#!/bin/bash
# expect: PS238 6
ip link add link eth0 name eth0.10 type vlan id 10
ip link add link eth0 name eth0.20 type vlan id 20
tc qdisc replace dev eth0.10 root tbf rate 5mbit burst 32kb latency 50ms
tc qdisc replace dev eth0.200 root tbf rate 5mbit burst 32kb latency 50ms
