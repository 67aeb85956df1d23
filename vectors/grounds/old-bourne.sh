#!/bin/sh
# As in 1999: backticks, expr, test without brackets' doubles, no functions with locals.
TC=/sbin/tc
DEV=eth0
RATE=`expr 512 \* 8`
if test ! -x $TC; then
   echo "no tc"
   exit 1
fi
$TC qdisc del dev $DEV root 2>/dev/null
$TC qdisc add dev $DEV root handle 10: prio
i=1
while test $i -le 3
do
   h=`expr $i \* 10`
   $TC qdisc add dev $DEV parent 10:$i handle 1$h: tbf rate `expr $RATE / $i`kbit buffer 1600 limit 3000
   i=`expr $i + 1`
done
for port in 22 23 513
do
   $TC filter add dev $DEV protocol ip parent 10: prio 1 u32 match ip dport $port 0xffff flowid 10:1
done
set `$TC qdisc show dev $DEV | wc -l` x
echo "qdiscs: $1"
case `uname -s` in
   Linux) echo "a linux" ;;
   *)     echo "something else" ;;
esac
if [ `$TC qdisc show dev $DEV | grep -c tbf` -eq 3 -a -n "$DEV" -o 1 -gt 2 ]
then echo "three tbf"
fi
