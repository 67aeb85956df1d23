#!/bin/bash
cleanup() { tc qdisc del dev eth0 root; }
trap cleanup EXIT
tc qdisc add dev eth0 root netem delay 20ms 5ms limit 5000
ping -c 20 192.0.2.1
