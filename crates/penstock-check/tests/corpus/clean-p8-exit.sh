#!/bin/sh
# ends that hang on something, and one within a text for later
[ -n "$1" ] || exit 1
if [ "$2" = off ]; then
exit 0
fi
cat > /usr/local/bin/later <<'END'
#!/bin/sh
exit 0
END
tc qdisc replace dev eth0 root fq_codel
exit 0
