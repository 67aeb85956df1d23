#!/bin/bash
# The text tools as scripts use them on tc's and ip's output.
tc qdisc add dev eth0 root handle 1: htb default 10 r2q 5
tc class add dev eth0 parent 1: classid 1:10 htb rate 1500kbit ceil 3mbit burst 10k
tc qdisc show dev eth0 | sed -e 's/^qdisc //' -e 's/refcnt [0-9]* //' -e '/^$/d'
tc class show dev eth0 | grep -oE '(rate|ceil) [0-9]+[KMG]?bit' | sort | uniq
tc class show dev eth0 | grep -Eo '1:[0-9a-f]+' | tr '\n' ',' | sed 's/,$//'; echo
ip -o link | awk -F': ' '!/lo/ {split($2, a, "@"); print NR, a[1]}'
ip -4 -o addr | awk '{print $2, $4}' | column -t 2>/dev/null || ip -4 -o addr | awk '{print $2, $4}'
ip addr show eth0 | awk '/inet / {sub("/.*", "", $2); print $2}'
ip addr show eth0 | grep -Po '(?<=inet )[0-9.]+' || echo "no -P"
ip route | grep -E '^default' | sed -r 's/.*via ([^ ]+).*/\1/'
ip route | cut -d' ' -f1,3 | head -n 2
printf '%s\n' eth1 eth0 eth10 eth2 | sort -V | paste -sd, -
printf 'b 2\na 10\nc 1\n' | sort -k2n | head -1
printf 'a:b:c\n' | awk -F: -v OFS=- '{$1 = $1; print $0, NF}'
echo "rate=10mbit,ceil=20mbit" | awk -F'[=,]' '{print $2, $4; print toupper(substr($1, 1, 1)) substr($1, 2)}'
seq 1 5 | awk 'NR % 2 {next} {s = s $1 " "} END {print s}'
echo "10 20 30" | xargs -n 1 | while read -r n; do echo -n "$((n * 2)) "; done; echo
echo "abc123def" | tr -cd '0-9'; echo
printf 'x\ny\nz\n' | sed -n '2p;$p'
printf 'keep\ndrop me\nkeep too\n' | grep -v drop | nl -ba | tr -s ' \t' ' '
echo "eth0 up" | { read -r d s; echo "$s $d"; }
comm -12 <(printf 'a\nb\n') <(printf 'b\nc\n')
printf '1\n2\n3\n' | awk '{a[NR] = $1} END {for (i = NR; i > 0; i--) printf "%s ", a[i]; print ""}'
echo "$(( $(echo '0x1f') ))" "$(printf %x 255)" "$(printf %o 8)"
wc -c <<< "12345" ; basename /etc/tc/shape.sh .sh; dirname /etc/tc/shape.sh; rev <<< abc
