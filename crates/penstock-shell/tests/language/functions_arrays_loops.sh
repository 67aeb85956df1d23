f() { local a=1 b; b=$((a+2)); echo $b; }
f; arr=(x "y z" w); echo "${#arr[@]} ${arr[1]} ${arr[@]:1}"; for i in "${arr[@]}"; do echo "[$i]"; done
declare -A m; m[eth0]=10mbit; m[eth1]=20mbit; for k in eth0 eth1; do echo "$k ${m[$k]}"; done
for ((i=0;i<3;i++)); do echo -n "$i "; done; echo
for ((;;)); do break; done
case "$1" in start|begin) echo s;; *) echo other;; esac
while read -r a b; do echo "$b-$a"; done <<EOF
1 2
3 4
EOF
printf '%s\n' a b | while read x; do echo "<$x>"; done
echo "${x:-unset}"
