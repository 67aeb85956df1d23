#!/bin/bash
# Reads what tc shows into arrays, and prints a report.
tc qdisc add dev eth0 root handle 1: htb default 12
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:12 htb rate 8mbit ceil 10mbit

declare -A rate ceil bytes
while read -r word kind id rest; do
	case $word in
		class)
			current=$id
			[[ $rest =~ rate\ ([^ ]+)\ ceil\ ([^ ]+) ]] && rate[$current]=${BASH_REMATCH[1]} ceil[$current]=${BASH_REMATCH[2]}
			;;
		Sent) bytes[$current]=$kind ;;
	esac
done < <(tc -s class show dev eth0)

printf '%-6s %10s %10s %8s\n' class rate ceil bytes
for id in $(printf '%s\n' "${!rate[@]}" | sort); do
	printf '%-6s %10s %10s %8d\n' "$id" "${rate[$id]}" "${ceil[$id]}" "${bytes[$id]:-0}"
done
total=$(tc class show dev eth0 | awk '/ root /{next} {for(i=1;i<NF;i++) if($i=="rate"){v=$(i+1); sub(/Mbit/,"",v); t+=v}} END{print t}')
echo "leaves: ${total}Mbit"
tc -s qdisc show dev eth0 | awk '/^qdisc/ {q = $2} /Sent/ {print q, "sent", $2, "dropped", substr($7, 1, length($7) - 1)}'
