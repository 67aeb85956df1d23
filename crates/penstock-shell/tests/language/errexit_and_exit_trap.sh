set -e
trap 'echo cleanup $?' EXIT
x=$(false) || echo handled
( exit 3 ) || echo "sub $?"
if ! grep -q foo /dev/null; then echo nofoo; fi
false
echo not reached
