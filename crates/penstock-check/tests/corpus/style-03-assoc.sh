#!/bin/bash
# expect: PS001 14
# expect: PS015 18
set -e
declare -A RATE=( [10.20.0.11]=20mbit [10.20.0.12]=50mbit )
LAN=br-lan
DEFAULT_RATE=5mbit
tc qdisc del dev "$LAN" root 2>/dev/null || :
tc qdisc add dev "$LAN" root handle 1: htb default fff
tc class add dev "$LAN" parent 1: classid 1:fff htb rate "$DEFAULT_RATE"
tc qdisc add dev "$LAN" parent 1:fff fq_codel
for host in "${!RATE[@]}"; do
    minor=$((100 + ${host##*.}))
    tc class add dev "$LAN" parent 1: classid "1:$minor" htb rate "${RATE[$host]}" cbrust 15k
done
# Guests.
tc class add dev "$LAN" parent 1: classid 1:50 htb rate 2mbit
tc qdisc add dev "$LAN" parent 1:50 cake bandwidth 2mbit $DEFUALT_RATE

# expect: PS158 18
