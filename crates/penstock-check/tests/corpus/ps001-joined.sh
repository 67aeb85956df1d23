# a space lost
# expect: PS001 4
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:2 handle 20: tbfrate 1000kbit buffer 1600 limit 3000
