# on U4, eth0
tc qdisc del dev eth0 root
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit burst 15k
tc qdisc add dev eth0 parent 1:10 handle 20: sfq perturb 10
