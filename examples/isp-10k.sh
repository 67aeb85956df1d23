# One class for each subscriber: 1 Mbit/s of its own, up to 20 of a shared 10 Gbit/s. Its address finds it in two steps of u32 hash tables:
# 10.64.THIRD.LAST -> table 2: at THIRD -> the table of THIRD at LAST.
set -e
sysctl -qw net.ipv4.ip_forward=1
tc qdisc add dev down root handle 1: htb default ffff
tc class add dev down parent 1: classid 1:ffff htb rate 10gbit
{
  echo "filter add dev down parent 1: prio 1 handle 2: protocol ip u32 divisor 256"
  echo "filter add dev down parent 1: prio 1 protocol ip u32 ht 800:: match ip dst 10.64.0.0/14 hashkey mask 0x0000ff00 at 16 link 2:"
  for ((third = 0; third < 157; third++)); do
    printf 'filter add dev down parent 1: prio 1 handle %x: protocol ip u32 divisor 256\n' $((third + 256))
    printf 'filter add dev down parent 1: prio 1 protocol ip u32 ht 2:%x: match ip dst 10.64.%d.0/24 hashkey mask 0x000000ff at 16 link %x:\n' \
      $third $third $((third + 256))
  done
  for ((n = 1; n <= 10000; n++)); do
    third=$(((n * 4 + 2) / 256)) last=$(((n * 4 + 2) % 256))
    printf 'class add dev down parent 1:ffff classid 1:%x htb rate 1mbit ceil 20mbit\n' $n
    printf 'qdisc add dev down parent 1:%x fq_codel limit 1000 flows 128\n' $n
    printf 'filter add dev down parent 1: prio 1 protocol ip u32 ht %x:%x: match ip dst 10.64.%d.%d flowid 1:%x\n' \
      $((third + 256)) $last $third $last $n
  done
} > classes.tc
tc -batch classes.tc
