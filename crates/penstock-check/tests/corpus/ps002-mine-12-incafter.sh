#!/usr/bin/env bash
# Limits for WireGuard peers.
set -o errexit -o nounset -o pipefail
iface=wg0
peers=(10.66.0.2 10.66.0.3 10.66.0.4)
tc qdisc del dev "$iface" root 2>/dev/null || true
tc qdisc add dev "$iface" root handle 1: htb default 99
tc class add dev "$iface" parent 1: classid 1:1 htb rate 100mbit
tc class add dev "$iface" parent 1:1 classid 1:99 htb rate 10mbit ceil 100mbit
n=98
for p in "${peers[@]}"; do
  tc class add dev "$iface" parent 1:1 classid 1:$n htb rate 20mbit ceil 50mbit
  tc qdisc add dev "$iface" parent 1:$n handle $n: fq_codel
  tc filter add dev "$iface" parent 1: protocol ip prio 1 u32 match ip dst "$p"/32 flowid 1:$n
  n=$((n+1))
done
# expect: PS002 12
