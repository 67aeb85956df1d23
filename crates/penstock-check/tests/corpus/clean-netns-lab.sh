#!/bin/bash
# a router between two hosts, the same device name in each of them
for ns in client router server; do
    ip netns add $ns
    ip -n $ns link set lo up
done
ip link add eth0 netns client type veth peer name left netns router
ip link add eth0 netns server type veth peer name right netns router
for ns in client server; do
    ip -n $ns link set eth0 up
    ip netns exec $ns tc qdisc add dev eth0 root netem delay 10ms limit 5000
done
ip netns exec router sysctl -q -w net.ipv4.ip_forward=1
shape() {
    ip netns exec router tc "$@"
}
shape qdisc add dev right root handle 1: htb default 20
shape class add dev right parent 1: classid 1:1 htb rate 10mbit ceil 10mbit
shape class add dev right parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit
shape class add dev right parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit
shape qdisc add dev right parent 1:10 fq_codel
shape qdisc add dev right parent 1:20 fq_codel
ip netns exec router iptables -t mangle -A POSTROUTING -o right -p tcp --dport 22 -j MARK --set-mark 7
shape filter add dev right parent 1: protocol ip prio 1 handle 7 fw flowid 1:10
