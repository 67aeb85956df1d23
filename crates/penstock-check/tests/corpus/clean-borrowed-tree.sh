#!/bin/sh
# the tree is another script's
# dnsmasq dhcp-script style
case "$1" in
  add|old)
    id=$(printf '%x' "$(echo "$3" | cut -d. -f4)")
    tc class replace dev br-lan parent 1:1 classid 1:$id htb rate 2mbit ceil 20mbit
    tc filter replace dev br-lan parent 1: protocol ip prio 10 u32 match ip dst "$3" flowid 1:$id
    ;;
  del) : ;;
esac
