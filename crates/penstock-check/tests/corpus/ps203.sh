#!/bin/bash
# fw on ingress
# expect: PS203 6
tc qdisc del dev eth0 ingress 2>/dev/null
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip prio 1 handle 5 fw police rate 1mbit burst 20k drop flowid :1
iptables -t mangle -A PREROUTING -i eth0 -p tcp --sport 80 -j MARK --set-mark 5
