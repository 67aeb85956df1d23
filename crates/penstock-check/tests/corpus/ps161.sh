# netem above fq_codel
# expect: PS161 3
tc qdisc add dev eth0 root handle 1: netem delay 100ms limit 5000
tc qdisc add dev eth0 parent 1:1 handle 10: fq_codel
