# a cycle longer than its entries
# expect: PS309 4
tc qdisc add dev eth0 clsact
tc filter add dev eth0 ingress prio 1 protocol ip matchall action gate cycle-time 200ms sched-entry open 50ms sched-entry close 100ms
