#!/bin/bash
# the second call of a function fails
# expect: PS002 6
tc qdisc del dev eth0 root 2>/dev/null
leaf() {
  tc qdisc add dev eth0 parent 1:$1 handle $1: sfq perturb 10
}
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
leaf 10
leaf 20
