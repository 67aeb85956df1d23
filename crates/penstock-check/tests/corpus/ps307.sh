# states without ct
# expect: PS307 4
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress prio 1 protocol ip flower ct_state +trk+est action ok
