# connections are tracked, committed and looked at
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress prio 1 protocol ip flower ct_state -trk action ct zone 5 pipe action goto chain 1
tc filter add dev eth0 ingress chain 1 prio 1 protocol ip flower ct_state +trk+est action ok
tc filter add dev eth0 ingress chain 1 prio 2 protocol ip flower ct_state +trk+new ip_proto tcp dst_port 22 action ct commit zone 5
tc filter add dev eth0 ingress chain 1 prio 3 protocol ip matchall action drop
tc filter add dev eth0 egress prio 1 protocol ip matchall action gate cycle-time 150ms sched-entry open 50ms sched-entry close 100ms
