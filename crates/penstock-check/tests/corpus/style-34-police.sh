#!/bin/bash
# expect: PS234 6
# expect: PS001 7
readonly dev="${DEV:?set DEV}"
tc qdisc replace dev "$dev" clsact
tc filter replace dev "$dev" ingress protocol ip prio 1 handle 1 matchall action police rate 100mbit burst 1k conform-exceed drop
tc filter replace dev "$dev" ingress protocol ip prio 2 handle 1 flower ip_proto udp src_prot 53 action drop
