#!/bin/bash
tc qdisc replace dev eth0 root handle 1: tbf rate 45mbit burst 64kb latency 30ms
tc qdisc add dev eth0 parent 1:1 handle 10: drr
tc class add dev eth0 parent 10: classid 10:1 drr quantum 3000
tc class add dev eth0 parent 10: classid 10:2 drr quantum 1514
tc qdisc add dev eth0 parent 10:1 fq_codel
tc qdisc add dev eth0 parent 10:2 fq_codel
tc filter add dev eth0 parent 10: protocol ip prio 1 flower ip_proto tcp dst_port 443 classid 10:1
tc filter add dev eth0 parent 10: protocol all prio 9 matchall classid 10:2
