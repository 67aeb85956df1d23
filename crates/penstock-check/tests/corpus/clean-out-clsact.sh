#!/bin/bash
# flower and police at clsact
IFACE=eth0
PORT=40001
tc qdisc show dev "$IFACE" | grep -q clsact || tc qdisc add dev "$IFACE" clsact
tc filter del dev "$IFACE" ingress pref 101 2>/dev/null || true
tc filter add dev "$IFACE" ingress pref 101 protocol ip flower ip_proto tcp dst_port "$PORT" action police rate 5mbit burst 256k conform-exceed drop
tc filter del dev "$IFACE" egress pref 102 2>/dev/null || true
tc filter add dev "$IFACE" egress pref 102 protocol ip flower ip_proto tcp src_port "$PORT" action police rate 5mbit burst 256k conform-exceed drop
