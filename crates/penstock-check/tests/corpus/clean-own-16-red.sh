#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn bandwidth 10mbit probability 0.02
