i=0; while true; do i=$((i+1)); [ $i -eq 2 ] && continue; [ $i -gt 4 ] && break; echo $i; done
for d in a b; do for e in 1 2; do [ $e = 2 ] && continue 2; echo $d$e; done; done
echo "a|b" | while IFS='|' read x y; do echo $x $y; done
wait; true & wait $!; echo $?
x=$(cat <<EOF
in sub
EOF
); echo "$x"
echo ok | tee /tmp/t.$$ ; cat /tmp/t.$$; rm /tmp/t.$$
[ "$(echo a)" = a ] && echo eq
