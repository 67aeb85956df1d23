trap 'echo int' INT TERM
trap 'echo bye' 0
usage() { cat <<EOF
Usage: $(basename $0) start|stop
EOF
exit 1; }
[ $# -lt 1 ] && usage
