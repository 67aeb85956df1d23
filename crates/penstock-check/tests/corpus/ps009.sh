#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
# saved by an editor on Windows
tc qdisc add dev eth0 root fq_codel
# expect: PS009 3
