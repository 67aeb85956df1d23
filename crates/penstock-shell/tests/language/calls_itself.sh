# As htb.init does: by its own name, into a file, and then that file.
case "$1" in
  compile) echo "echo compiled by \$0"; echo 'echo "and run"'; exit 0 ;;
  fail) exit 7 ;;
esac
CACHE=/tmp/calls_itself.$$
$0 compile > $CACHE || exit 1
"$0" fail; echo "status $?"
sed 's/by .*/by it/' $CACHE > $CACHE.2; /bin/sh $CACHE.2
. $CACHE.2; sh -c 'echo "$0 $1"' zero one; bash $CACHE.2 | tail -1
here=$(cd "$(dirname "$0")" && pwd); [ -n "$here" ] && [ -r "$0" ] && echo readable
rm -f $CACHE $CACHE.2
exec /bin/sh -c 'echo last; exit 4'
