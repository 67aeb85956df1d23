#!/bin/bash
# learn-address script of OpenVPN.
set -eu
statedir=/run/openvpn-shaper
mkdir -p "$statedir"

add() {
    local ip=$1 minor
    minor=$((16#$(printf '%02x%02x' $(echo "$ip" | tr . ' ' | cut -d' ' -f3,4)) % 4000 + 10))
    tc class replace dev "$dev" parent 1: classid 1:"$minor" htb rate 4mbit ceil 8mbit
    tc filter add dev "$dev" parent 1: protocol ip prio 1 u32 match ip dst "$ip"/32 flowid 1:"$minor"
    echo "$minor" > "$statedir/$ip"
}

case $1 in
    add|update) add "$2" ;;
    delete) rm -f "$statedir/$2" ;;
esac
