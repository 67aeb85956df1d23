while getopts "d:r:hv" o; do case $o in d) D=$OPTARG;; r) R=$OPTARG;; h) echo help;; v) V=1;; *) echo "bad $o";; esac; done
shift $((OPTIND-1)); echo "$D $R $V rest:$*"
