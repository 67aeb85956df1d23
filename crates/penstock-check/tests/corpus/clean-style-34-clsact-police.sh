#!/bin/bash
set -o errexit -o nounset -o pipefail
readonly dev="${DEV:?set DEV}"
tc qdisc replace dev "$dev" clsact
tc filter replace dev "$dev" ingress protocol ip prio 1 handle 1 flower ip_proto icmp \
    action police rate 128kbit burst 16k conform-exceed drop
tc filter replace dev "$dev" ingress protocol ip prio 2 handle 1 flower ip_proto udp src_port 53 \
    action police rate 10mbit burst 200k conform-exceed drop/pass
tc filter show dev "$dev" ingress
