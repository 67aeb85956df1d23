# a loop
# expect: PS304 4
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 action mirred egress redirect dev eth0
