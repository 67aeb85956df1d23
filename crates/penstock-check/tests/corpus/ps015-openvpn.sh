#!/bin/bash
# penstock-check: an up-script of OpenVPN: what its environment gives is unknown and no mistake.
set -u
rate=${bytes_limit}bps
case "$script_type" in
  up)
    tc qdisc del dev "$dev" root 2>/dev/null
    tc qdisc add dev "$dev" root handle 1: htb default 10
    tc class add dev "$dev" parent 1: classid 1:1 htb rate 100mbit
    tc class add dev "$dev" parent 1:1 classid 1:10 htb rate 20mbit ceil 100mbit
    ;;
  client-connect)
    tc class add dev "$dev" parent 1:1 classid 1:20 htb rate "$rate" ceil 100mbit
    tc filter add dev "$dev" parent 1: protocol ip prio 1 u32 match ip dst "$ifconfig_pool_remote_ip"/32 flowid 1:20
    ;;
  down)
    tc qdisc del dev "$dev" root
    ;;
esac
