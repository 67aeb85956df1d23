# a class of another major
# expect: PS002 4
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 2:10 htb rate 1mbit
