#!/bin/sh /etc/rc.common
# expect: PS346 12
# the qdiscs are made once
START=90
start() {
    tc qdisc add dev eth1 root cake bandwidth 10mbit
    tc qdisc add dev eth1 ingress
    tc filter add dev eth1 ingress matchall action police rate 50mbit burst 500k conform-exceed drop
}
# and the ingress?
stop() {
    tc qdisc del dev eth1 root
}
