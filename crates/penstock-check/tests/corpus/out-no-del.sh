#!/bin/bash
# works once
# expect: PS250 4
sudo tc qdisc add dev ens3 handle 1: root htb default 11
sudo tc class add dev ens3 parent 1: classid 1:1 htb rate 100mbit
sudo tc class add dev ens3 parent 1:1 classid 1:11 htb rate 20mbit
