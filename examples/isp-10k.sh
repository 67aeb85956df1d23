# One class for each subscriber: 1 Mbit/s of its own, up to 20 of a shared 10 Gbit/s. Its address finds it in two steps of u32 hash tables:
# 10.64.THIRD.LAST -> table 2: at THIRD -> the table of THIRD at LAST.
set -e
sysctl -qw net.ipv4.ip_forward=1
tc qdisc add dev down root handle 1: htb default ffff
tc class add dev down parent 1: classid 1:ffff htb rate 10gbit
awk 'BEGIN {
  filter = "filter add dev down parent 1: prio 1"
  print filter " handle 2: protocol ip u32 divisor 256"
  print filter " protocol ip u32 ht 800:: match ip dst 10.64.0.0/14 hashkey mask 0x0000ff00 at 16 link 2:"
  for (third = 0; third < 157; third++) {
    table = third + 256
    printf "%s handle %x: protocol ip u32 divisor 256\n", filter, table
    printf "%s protocol ip u32 ht 2:%x: match ip dst 10.64.%d.0/24 hashkey mask 0x000000ff at 16 link %x:\n", filter, third, third, table
  }
  for (n = 1; n <= 10000; n++) {
    third = int((n * 4 + 2) / 256); last = (n * 4 + 2) % 256
    printf "class add dev down parent 1:ffff classid 1:%x htb rate 1mbit ceil 20mbit\n", n
    printf "qdisc add dev down parent 1:%x fq_codel limit 1000 flows 128\n", n
    printf "%s protocol ip u32 ht %x:%x: match ip dst 10.64.%d.%d flowid 1:%x\n", filter, third + 256, last, third, last, n
  }
}' > classes.tc
tc -batch classes.tc
