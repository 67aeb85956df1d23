x=abc
case $x in [a-c]*) echo r;& z) echo fall;; esac
case "$x" in *b*) echo hasb ;; esac
if [ -e /nonexist ]; then :; elif true; then echo elif; else echo else; fi
echo "a b   c" | tr -s ' ' | cut -d' ' -f3
echo one two three | xargs -n1 echo item
printf '%s\n' 10.0.0.1 10.0.0.2 | xargs -I{} echo ip {}
ls /tmp/nonexist.$$ 2>/dev/null || echo none
date +%s >/dev/null && echo date
nproc >/dev/null && echo nproc
uname -s; hostname >/dev/null && echo hn; id -u
