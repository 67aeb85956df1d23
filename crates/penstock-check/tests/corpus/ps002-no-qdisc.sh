#!/bin/bash
# a class without its qdisc
# expect: PS002 4
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
