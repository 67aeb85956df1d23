# a blank is missing before root
# expect: PS250 7
# expect: PS002 6
import os
dev = "eth0"
os.system("tc qdisc del dev " + dev + "root")
os.system("tc qdisc add dev " + dev + " root handle 1: htb default 10")
os.system("tc class add dev " + dev + " parent 1: classid 1:10 htb rate 5mbit")
