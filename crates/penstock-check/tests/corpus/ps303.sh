# an ifb without a shaper
# expect: PS303 6
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0
