# nothing is committed
# expect: PS308 5
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress prio 1 protocol ip flower ct_state -trk action ct pipe action goto chain 1
tc filter add dev eth0 ingress chain 1 prio 1 protocol ip flower ct_state +trk+est action ok
tc filter add dev eth0 ingress chain 1 prio 2 protocol ip flower ct_state +trk+new action drop
