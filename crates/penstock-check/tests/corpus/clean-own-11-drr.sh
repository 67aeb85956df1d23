#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr quantum 3000
tc class add dev eth0 parent 1: classid 1:2 drr quantum 1514
tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto tcp dst_port 443 classid 1:1
tc filter add dev eth0 parent 1: protocol all prio 9 matchall classid 1:2
