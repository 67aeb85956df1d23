# target above max
# expect: PS291 3
tc qdisc add dev eth0 root sfb target 40 max 25
