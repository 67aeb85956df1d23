x=eth0.100; echo ${x%.*} ${x#*.} ${x/eth/vlan} ${x^^} ${#x} ${x:0:3}; y=a:b:c; IFS=: read p q r <<< "$y"; echo $p $q $r; IFS=':'; set -- $y; echo $# $2; unset IFS
z=10mbit; echo $(( ${z%mbit} * 1000 )); echo $((0x1F)) $((1<<4)) $((7%3)) $((5>3?1:0)); let "n=3*4"; echo $n; ((n++)); echo $n; n=$[n+1]; echo $n
v=name; name=val; echo ${!v}; eval "$v=new"; echo $name
