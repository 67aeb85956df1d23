# A line for each source of chance and time that a script can reach. Every line is printed with its number, so that a difference says where.
n=0; p() { n=$((n + 1)); echo "$n: $*"; }
p $RANDOM $RANDOM; p "${RANDOM:0:2}" $((RANDOM % 9))
p $SRANDOM "${SRANDOM}" ${SRANDOM:0:4} ${#SRANDOM} $((SRANDOM % 100))
v=SRANDOM; p ${!v}; v=RANDOM; p ${!v}
f() { p $SRANDOM $RANDOM; }; f
echo 'p $SRANDOM $RANDOM ${SRANDOM:1:3}' > /tmp/sourced; . /tmp/sourced; source /tmp/sourced
eval 'p $SRANDOM $EPOCHSECONDS'
trap 'echo "trap $SRANDOM $RANDOM ${SRANDOM:0:3}"' EXIT; trap 'p usr1 $SRANDOM' USR1; kill -USR1 $$
p $(bash -c 'echo $RANDOM $SRANDOM $$ $BASHPID'); p $(sh -c 'echo $$')
(p sub $RANDOM $SRANDOM $BASHPID); p $(p inner $RANDOM)
echo '#!/bin/bash
echo "$RANDOM $SRANDOM $$"' > /tmp/run; chmod +x /tmp/run; p $(/tmp/run); p $(bash /tmp/run)
p $$ $BASHPID $PPID
p $(seq 20 | sort -R); p $(seq 20 | sort -R | head -3); p $(printf 'b\na\nb\n' | sort --random-sort -u); p $(seq 5 | sort --sort=random -r)
p $(seq 20 | shuf); p $(shuf -i 1-1000 -n 5); p $(shuf -e a b c d e); p $(shuf -r -n 6 -e x y)
p $(cat /proc/sys/kernel/random/uuid); p $(< /proc/sys/kernel/random/uuid); p $(cat /proc/sys/kernel/random/boot_id)
p $(uuidgen) $(uuidgen -r); p $(openssl rand -hex 8) $(openssl rand -base64 9) $(openssl rand 16 | md5sum)
p $(head -c 16 /dev/urandom | md5sum) $(head -c 16 /dev/random | md5sum) $(od -An -N8 -tx1 < /dev/urandom)
p $(dd if=/dev/urandom bs=16 count=2 2> /dev/null | md5sum); read -r -n 4 x < <(tr -dc a-z < /dev/urandom | head -c 8); p $x
p $(mktemp) $(mktemp -d) $(mktemp -u /tmp/x.XXXX) $(mktemp -t y.XXXXXX)
p $(date) $(date +%s) $(date +%N) $(date -d yesterday +%F) $(date -u -Iseconds) $(TZ=Asia/Tokyo date +%H)
p $EPOCHSECONDS $EPOCHREALTIME $SECONDS ${EPOCHREALTIME%.*} $((EPOCHSECONDS - 1))
printf '%(%F %T)T\n' -1; printf '%(%s)T\n' 0
sleep 1.5; p $SECONDS $EPOCHREALTIME $(date +%s.%3N); SECONDS=40; sleep 2; p $SECONDS
timeout 1 sleep 5; p $? $SECONDS; timeout 5 sleep 1; p $? $SECONDS; timeout 2 bash -c 'sleep 9; echo no'; p $? $SECONDS
timeout 600 sleep 400; p $? $SECONDS; timeout 3 true; p $?; timeout 0.2 sh -c 'while :; do sleep 0.05; done'; p $?
{ time sleep 2; } 2>&1 | grep real; TIMEFORMAT=%R; { time true; } 2>&1
sleep 3 & q=$!; wait $q; p $? $q $SECONDS; (sleep 1; echo a) & (sleep 2; echo b) & wait; p $SECONDS
touch /tmp/t; p $(ls -l --time-style=full-iso /tmp/t); p $(stat -c '%Y %X %Z %i' /tmp/t); p $(find /tmp -newer /tmp/t -name t); p $(find /tmp -mmin -1 -name t)
[ /tmp/t -nt /tmp/sourced ]; p $?; touch -d '2020-01-02' /tmp/t; p $(date -r /tmp/t +%F)
p $(awk 'BEGIN { print rand(), rand(); srand(5); print rand(); print srand(), systime(), strftime("%F") }')
p $(awk 'BEGIN { srand(); print srand() }')
declare -A A=([a]=1 [b]=2 [c]=3 [d]=4 [e]=5); p ${!A[@]} ${A[@]}; declare -p A; for k in "${!A[@]}"; do p $k; done
p $(awk 'BEGIN { for (i = 0; i < 9; i++) x[i "k"]; for (k in x) printf "%s ", k }')
alias zz=ls yy=cat; alias; compgen -v | sort | head -200 | md5sum; set | md5sum; env; export -p; declare -F; hash; trap -p; jobs; ulimit -a; shopt -p | md5sum
p ${!P*}; p $(hostname) $(whoami) $(uname -a) $(tty) $(nproc) $(id); ps; free; df; uptime; history; cat /proc/uptime; w; who; last; arch
p $(find / -maxdepth 2 2> /dev/null | md5sum); p $(ls / /tmp /dev /proc 2>&1); p /tmp/*; p $LINENO $0 $SHLVL $_ $PWD $OLDPWD $BASH_VERSION $HOSTNAME $MACHTYPE
p $(tc qdisc show dev eth0); tc -s qdisc add dev eth0 root netem delay 1ms; p $(tc qdisc show dev eth0)
p $(echo x | md5sum) $(echo x | gzip | md5sum) $(cd /tmp && tar cf - t | md5sum) $(split --version 2>&1 | head -1)
p $(python3 -c 'import random; print(random.random())' 2>&1); p $(perl -e 'print rand' 2>&1); p $(openssl version 2>&1)
