cat > /tmp/shaper_conf.$$ <<EOF
RATE=5
NAME="my link"
EOF
. /tmp/shaper_conf.$$; echo "$RATE $NAME"; rm -f /tmp/shaper_conf.$$; [ -f /tmp/shaper_conf.$$ ] || echo gone
