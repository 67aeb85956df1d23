printf 'a=1\nb=2\nc=3\n' | sed -n '2p'; printf 'a=1\nb=2\n' | sed -n 's/^b=//p'; echo 'rate 10Mbit ceil 20Mbit' | sed 's/.*rate \([0-9]*\)Mbit.*/\1/'; echo "1: lo: <UP>" | awk -F': ' '{print $2}'
echo "a b c" | awk '{for(i=NF;i>0;i--) printf "%s ", $i; print ""}'; echo "x 5
y 7" | awk '{s+=$2} END {print s, NR}'; echo foo,bar | cut -d, -f2; echo HELLO | tr 'A-Z' 'a-z'; printf 'b\na\nb\n' | sort -u | wc -l; echo abc | rev; printf '1\n2\n3\n' | tail -n 1; printf '1\n2\n3\n' | head -n 2 | paste -sd,
