#!/bin/bash
DEV=tun0
case "$1" in
  add|update)
    tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dst "$2"/32 flowid 1:10
    ;;
  delete)
    tc filter del dev $DEV parent 1: protocol ip prio 1 u32 match ip dst "$2"/32
    ;;
esac
# expect: PS255 8
