#!/bin/bash
# learn-address
DEV=${dev:-tun0}
id=$(echo "$2" | cut -d. -f4)
hex=$(printf '%x' "$id")
tc class replace dev $DEV parent 1: classid 1:$hex htb rate 10mbit
tc filter replace dev $DEV parent 1: protocol ip prio $id handle 800::$hex u32 match ip dst $2/32 flowid 1:$hex
