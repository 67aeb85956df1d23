#!/bin/bash
# limits a container's card from the host: what it downloads, then what it uploads
C=${1:?container}
pid=$(docker inspect -f '{{.State.Pid}}' "$C")
idx=$(nsenter -t "$pid" -n cat /sys/class/net/eth0/iflink)
veth=$(ip -o link | awk -F': ' -v i="$idx" '$1==i{print $2}' | cut -d@ -f1)
tc qdisc replace dev "$veth" root tbf rate 10mbit burst 32kbit latency 50ms
tc qdisc del dev "$veth" ingress 2>/dev/null
tc qdisc add dev "$veth" handle ffff: ingress
tc filter add dev "$veth" parent ffff: protocol all prio 1 u32 match u32 0 0 police rate 5mbit burst 64k drop flowid :1
