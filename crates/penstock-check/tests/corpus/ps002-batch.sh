# a batch with a wrong parent
# expect: PS002 5
qdisc replace dev eth0 root handle 1: htb default 10
class add dev eth0 parent 1: classid 1:10 htb rate 1mbit
class add dev eth0 parent 2: classid 2:10 htb rate 1mbit
