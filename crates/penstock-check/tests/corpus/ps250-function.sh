#!/bin/sh
# no deletion in a function
# expect: PS250 6
IF=wlan0
start() {
  tc qdisc add dev $IF root handle 1: tbf rate 1mbit burst 10k latency 50ms
}
start
