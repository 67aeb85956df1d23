n=0
f() { :; :; }
trap 'n=$((n + 1))' DEBUG
true
f
trap - DEBUG
echo $n
