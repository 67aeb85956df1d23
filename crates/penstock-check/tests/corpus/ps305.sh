# stab, and cake's own overhead
# expect: PS305 3
tc qdisc add dev eth0 root stab overhead 40 linklayer ethernet cake bandwidth 20mbit ethernet overhead 40
