# Only what is true of every run.
start=$SECONDS; a=$(date +%s)
sleep 1; sleep 0.5; sleep 0.5
b=$(date +%s)
[ $((b - a)) -ge 2 ] && echo slept
[ $((SECONDS - start)) -ge 2 ] && echo counted
SECONDS=100; [ $SECONDS -ge 100 ] && [ "${SECONDS}" -lt 105 ] && echo set
end=$((SECONDS + 3)); n=0; while [ $SECONDS -lt $end ]; do sleep 1; n=$((n + 1)); done; [ $n -le 3 ] && echo waited
[ ${#RANDOM} -le 5 ] && [ $RANDOM -lt 32768 ] && echo dice; [ "$SRANDOM" -lt 4294967296 ] && [ $((SRANDOM % 7)) -lt 7 ] && echo more dice
head -c 8 /dev/urandom | wc -c; [ "$(head -c 4 /dev/urandom | od -An -tx1)" != "$(head -c 4 /dev/urandom | od -An -tx1)" ] && echo differ
date -u -d @0 '+%Y-%m-%d %H:%M'; TZ=UTC date -d '2024-02-29 12:00' +%j; date --badoption 2>/dev/null || echo bad
