cat <<-EOF
	tabbed $((1+1))
	EOF
cat <<'EOF'
$literal `x`
EOF
A="multi
line"; echo "$A" | wc -l
cmd="echo hi there"; $cmd; echo "a  b" | { read -r l; echo "$l"; }
diff <(echo a) <(echo a) && echo same
mapfile -t L < <(printf 'p\nq\n'); echo ${L[1]}
exec 3>/tmp/fd3.$$; echo to3 >&3; exec 3>&-; cat /tmp/fd3.$$; rm /tmp/fd3.$$
