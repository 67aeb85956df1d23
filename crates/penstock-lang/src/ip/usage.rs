//! Usage texts: our own words, in the order of ip's.

pub(super) const IP: &str = "Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }
       ip [ -force ] -batch filename
where  OBJECT := { address | link | neigh | netns | nexthop | route | rule | tunnel | vrf }
       OPTIONS := { -V[ersion] | -s[tatistics] | -d[etails] | -br[ief] | -o[neline] |
                    -j[son] | -p[retty] | -4 | -6 | -0 | -n[etns] NAME | -b[atch] FILE }
";
pub(super) const ADDR: &str = "Usage: ip address {add|change|replace} IFADDR dev IFNAME [ LIFETIME ]
                                                       [ broadcast ADDR ] [ label LABEL ] [ scope SCOPE ]
       ip address del IFADDR dev IFNAME
       ip address {show|flush} [ dev IFNAME ] [ scope SCOPE ] [ to PREFIX ] [ label LABEL ] [ up ]
IFADDR := PREFIX | ADDR peer PREFIX
";
pub(super) const LINK: &str = "Usage: ip link add [link DEV | parentdev NAME] [ name ] NAME
		    [ address LLADDR ] [ mtu MTU ] [ txqueuelen PACKETS ] [ numtxqueues COUNT ]
		    type TYPE [ ARGS ]
	ip link delete { DEVICE | dev DEVICE | group DEVGROUP }
	ip link set { DEVICE | dev DEVICE | group DEVGROUP } [ { up | down } ]
		[ mtu MTU ] [ txqueuelen PACKETS ] [ address LLADDR ] [ name NEWNAME ]
		[ netns NAME ] [ master DEVICE | vrf NAME ] [ nomaster ] [ alias TEXT ] [ promisc { on | off } ]
	ip link show [ DEVICE | group GROUP ] [up] [master DEV] [type TYPE] [nomaster]
	ip link property { add | del } dev DEVICE [ altname NAME .. ]
TYPE := { bond | bridge | dummy | gre | gretap | ifb | ipip | macvlan | sit | veth | vlan | vrf | vxlan }
";
pub(super) const ROUTE: &str = "Usage: ip route { list | flush } SELECTOR
       ip route get ADDRESS [ from ADDRESS ] [ oif STRING ] [ mark NUMBER ] [ tos TOS ]
       ip route { add | del | change | append | replace } ROUTE
SELECTOR := [ root PREFIX ] [ match PREFIX ] [ exact PREFIX ] [ table TABLE_ID ] [ proto RTPROTO ]
            [ type TYPE ] [ scope SCOPE ] [ dev STRING ] [ via ADDRESS ]
ROUTE := [ TYPE ] PREFIX [ via ADDRESS ] [ dev STRING ] [ src ADDRESS ] [ metric METRIC ]
         [ table TABLE_ID ] [ proto RTPROTO ] [ scope SCOPE ] [ onlink ] [ mtu NUMBER ] { nexthop NH | nhid ID }
";
pub(super) const NEXTHOP: &str = "Usage: ip nexthop { list | flush } [ protocol ID ] SELECTOR
       ip nexthop { add | replace } id ID NH [ protocol ID ]
       ip nexthop { get | del } id ID
SELECTOR := [ id ID ] [ dev DEV ] [ vrf NAME ] [ master DEV ] [ groups ]
NH := { blackhole | [ via ADDRESS ] [ dev DEV ] [ onlink ] | group ID[,WEIGHT][/ID[,WEIGHT]...] [ type mpath ] }
";
pub(super) const NEIGH: &str = "Usage: ip neigh { add | del | change | replace }
		{ ADDR [ lladdr LLADDR ] [ nud STATE ] | proxy ADDR } dev DEV
	ip neigh { show | flush } [ proxy ] [ to PREFIX ] [ dev DEV ] [ nud STATE ]
	ip neigh get { ADDR | proxy ADDR } dev DEV
STATE := { permanent | noarp | stale | reachable | none | incomplete | delay | probe | failed }
";
pub(super) const RULE: &str = "Usage: ip rule { add | del } SELECTOR ACTION
       ip rule { flush | show }
SELECTOR := [ not ] [ from PREFIX ] [ to PREFIX ] [ tos TOS ] [ fwmark FWMARK[/MASK] ] [ iif STRING ]
            [ oif STRING ] [ pref NUMBER ] [ uidrange N-N ] [ ipproto PROTOCOL ] [ sport N[-N] ] [ dport N[-N] ]
ACTION := [ table TABLE_ID | l3mdev ] [ prohibit | unreachable | blackhole ]
";
pub(super) const NETNS: &str = "Usage:	ip netns list
	ip netns add NAME
	ip netns set NAME NETNSID
	ip [-all] netns delete [NAME]
	ip netns identify
	ip netns pids NAME
	ip [-all] netns exec [NAME] cmd ...
	ip netns list-id
";
pub(super) const VRF: &str = "Usage:	ip vrf show [NAME] ...
	ip vrf exec [NAME] cmd ...
	ip vrf identify [PID]
	ip vrf pids [NAME]
";
