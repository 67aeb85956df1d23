#!/bin/bash
tc qdisc replace dev eth0 clsact
tc filter add dev eth0 ingress protocol ip prio 1 flower src_ip 10.0.0.0/8 action goto chain 20
tc filter add dev eth0 ingress protocol ip prio 2 flower src_ip 192.168.0.0/16 action goto chain 10
for c in 10 20; do
  tc filter add dev eth0 ingress chain $c protocol ip prio 1 flower ip_proto tcp dst_port 22 action pass
  tc filter add dev eth0 ingress chain $c protocol ip prio 9 matchall action drop
done
