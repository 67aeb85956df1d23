set -u
echo "${a:-d}"
echo "$nope"
echo after
