# pie on a slow line
# expect: PS292 5
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 256kbit
tc qdisc add dev eth0 parent 1:10 pie
