# Runs in the virtual machine: `inside.sh JOB` runs each case of JOB/cases, one a folder, in namespaces of its own.
# `inside.sh JOB CASE` is such a case: it leaves what came out, and the state the script left, in the case's folder.

job=$1
if [ $# = 1 ]; then
	# No namespace gets tunnels of its own.
	echo 2 > /proc/sys/net/core/fb_tunnels_only_for_init_net
	for folder in "$job"/cases/*/; do
		unshare --mount --net --uts --pid --fork --kill-child --mount-proc bash "$0" "$job" "$(basename "$folder")"
	done
	exit
fi

case=$job/cases/$2
exec > /dev/null 2> "$case/trouble"
hostname penstock
mount --bind "$case" /srv
mount --bind "$job" /opt
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
for folder in /tmp /run /root /home; do mount -t tmpfs -o mode=755 tmpfs $folder; done
mkdir /run/lock
rm -f /etc/sysctl.d/* /etc/sysctl.conf
# The tools of one packet filter show nothing of the other's.
mount --bind "$(readlink -f "$(command -v iptables-legacy)")" "$(readlink -f "$(command -v iptables)")"
# No IPv6 address is made by itself.
echo 1 > /proc/sys/net/ipv6/conf/default/addr_gen_mode

# Two cards: a tap device whose other end is held open has a carrier and a queue, as a card has.
python3 - <<'END' &
import fcntl, os, signal, struct, time
held = []
for name in ("eth0", "eth1"):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", name.encode(), 0x1002))
    held.append(tun)
open("/mnt/ready", "w").close()
while not os.path.exists("/mnt/up"):
    time.sleep(0.01)
# A carrier that comes while the card is up.
for carrier in (0, 1):
    for tun in held:
        fcntl.ioctl(tun, 0x400454E2, struct.pack("i", carrier))
    time.sleep(1)
signal.pause()
END
until [ -e /mnt/ready ]; do sleep 0.01; done
ip link set lo up
ip addr del ::1/128 dev lo
ip link set eth0 address 02:00:00:00:00:01 up
ip link set eth1 address 02:00:00:00:00:02 up
ip addr add 10.0.0.1/24 brd + dev eth0
ip addr add 192.168.1.1/24 brd + dev eth1
touch /mnt/up
sleep 3
ip route add default via 10.0.0.254
# Until no address is tentative any more.
sleep 5
tc qdisc add dev lo root pfifo
tc qdisc show dev lo | cut -d' ' -f3 > /srv/auto
tc qdisc del dev lo root

cp -r /opt/beside/. /root
cp /srv/script "/root/$2"
cd /root
sysctl -a -r '^net\.' 2> /dev/null > /srv/before
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
	bash "./$2" < /dev/null > /srv/stdout 2> /srv/stderr
echo $? > /srv/exit
sysctl -a -r '^net\.' 2> /dev/null > /srv/after

# Tables of routes are shown by their numbers.
umount /etc

show() {
	echo "## $*"
	"$@" 2>&1
}
{
	devices=$(ls /sys/class/net)
	show ip addr
	show ip -4 route show table all
	show ip -6 route show
	show ip rule
	show ip neigh show nud permanent
	show tc qdisc show
	for dev in $devices; do
		show tc class show dev $dev
		show tc filter show dev $dev
		show tc filter show dev $dev ingress
		show tc filter show dev $dev egress
	done
	show iptables-save
	show nft list ruleset
} > /srv/state
