# A reservation daemon of a router. Each second it looks which senders' messages have come since; a sender's reservation is made with the first
# and ends when none has come for 16 seconds (three messages and a little, RFC 2205 section 3.7).
declare -A seen heard held
rate()  { case $1 in 10.0.1.2) echo 100kbit ;; *) echo 2300kbit ;; esac; }
port()  { case $1 in 10.0.1.2) echo 5004 ;; *) echo 5006 ;; esac; }
class() { echo "1:1${1##*.}"; }

reserve() {
  tc class add dev eth1 parent 1:1 classid "$(class "$1")" cbq bandwidth 4mbit rate "$(rate "$1")" \
    allot 1514 weight 100kbit prio 2 maxburst 20 avpkt 1000
  tc filter add dev eth1 parent 1: protocol ip prio 10 rsvp ipproto udp session "10.0.2.2/$(port "$1")" sender "$1" classid "$(class "$1")"
  held[$1]=yes
  echo "$now s: $1 has $(rate "$1")"
}

release() {
  tc filter del dev eth1 parent 1: protocol ip prio 10
  tc class del dev eth1 classid "$(class "$1")"
  unset "held[$1]"
  # The others' filters went with the priority.
  for other in "${!held[@]}"; do
    tc filter add dev eth1 parent 1: protocol ip prio 10 rsvp ipproto udp session "10.0.2.2/$(port "$other")" sender "$other" classid "$(class "$other")"
  done
  echo "$now s: $1 has nothing any more"
}

for ((now = 1; now < 60; now++)); do
  sleep 1
  for sender in 10.0.1.2 10.0.1.3; do
    count=$(iptables -L FORWARD -v -n -x | awk -v s="$sender" '$7 == s { print $1 }')
    if [ "$count" != "${seen[$sender]:-0}" ]; then
      seen[$sender]=$count
      heard[$sender]=$now
      [ -n "${held[$sender]:-}" ] || reserve "$sender"
    elif [ -n "${held[$sender]:-}" ] && ((now - heard[$sender] > 16)); then
      release "$sender"
    fi
  done
done
