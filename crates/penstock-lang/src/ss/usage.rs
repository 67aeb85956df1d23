//! What `ss` says of its use.
//!
//! Follows: iproute2 6.1.0 `misc/ss.c` `_usage`.

/// All of it.
pub(super) const USAGE: &str = "\
    Usage: ss [ OPTIONS ]\n\
    \x20      ss [ OPTIONS ] [ FILTER ]\n\
    \x20  -h, --help          this message\n\
    \x20  -V, --version       output version information\n\
    \x20  -n, --numeric       don't resolve service names\n\
    \x20  -r, --resolve       resolve host names\n\
    \x20  -a, --all           display all sockets\n\
    \x20  -l, --listening     display listening sockets\n\
    \x20  -o, --options       show timer information\n\
    \x20  -e, --extended      show detailed socket information\n\
    \x20  -m, --memory        show socket memory usage\n\
    \x20  -p, --processes     show process using socket\n\
    \x20  -T, --threads       show thread using socket\n\
    \x20  -i, --info          show internal TCP information\n\
    \x20      --tipcinfo      show internal tipc socket information\n\
    \x20  -s, --summary       show socket usage summary\n\
    \x20      --tos           show tos and priority information\n\
    \x20      --cgroup        show cgroup information\n\
    \x20  -b, --bpf           show bpf filter socket information\n\
    \x20  -E, --events        continually display sockets as they are destroyed\n\
    \x20  -Z, --context       display task SELinux security contexts\n\
    \x20  -z, --contexts      display task and socket SELinux security contexts\n\
    \x20  -N, --net           switch to the specified network namespace name\n\
    \n\
    \x20  -4, --ipv4          display only IP version 4 sockets\n\
    \x20  -6, --ipv6          display only IP version 6 sockets\n\
    \x20  -0, --packet        display PACKET sockets\n\
    \x20  -t, --tcp           display only TCP sockets\n\
    \x20  -M, --mptcp         display only MPTCP sockets\n\
    \x20  -S, --sctp          display only SCTP sockets\n\
    \x20  -u, --udp           display only UDP sockets\n\
    \x20  -d, --dccp          display only DCCP sockets\n\
    \x20  -w, --raw           display only RAW sockets\n\
    \x20  -x, --unix          display only Unix domain sockets\n\
    \x20      --tipc          display only TIPC sockets\n\
    \x20      --vsock         display only vsock sockets\n\
    \x20      --xdp           display only XDP sockets\n\
    \x20  -f, --family=FAMILY display sockets of type FAMILY\n\
    \x20      FAMILY := {inet|inet6|link|unix|netlink|vsock|tipc|xdp|help}\n\
    \n\
    \x20  -K, --kill          forcibly close sockets, display what was closed\n\
    \x20  -H, --no-header     Suppress header line\n\
    \x20  -O, --oneline       socket's data printed on a single line\n\
    \x20      --inet-sockopt  show various inet socket options\n\
    \n\
    \x20  -A, --query=QUERY, --socket=QUERY\n\
    \x20      QUERY := {all|inet|tcp|mptcp|udp|raw|unix|unix_dgram|unix_stream|unix_seqpacket|packet|packet_raw|\
    packet_dgram|netlink|dccp|sctp|vsock_stream|vsock_dgram|tipc|xdp}[,QUERY]\n\
    \n\
    \x20  -D, --diag=FILE     Dump raw information about TCP sockets to FILE\n\
    \x20  -F, --filter=FILE   read filter information from FILE\n\
    \x20      FILTER := [ state STATE-FILTER ] [ EXPRESSION ]\n\
    \x20      STATE-FILTER := {all|connected|synchronized|bucket|big|TCP-STATES}\n\
    \x20        TCP-STATES := {established|syn-sent|syn-recv|fin-wait-{1,2}|time-wait|closed|close-wait|\
    last-ack|listening|closing}\n\
    \x20         connected := {established|syn-sent|syn-recv|fin-wait-{1,2}|time-wait|close-wait|last-ack|\
    closing}\n\
    \x20      synchronized := {established|syn-recv|fin-wait-{1,2}|time-wait|close-wait|last-ack|closing}\n\
    \x20            bucket := {syn-recv|time-wait}\n\
    \x20               big := {established|syn-sent|fin-wait-{1,2}|closed|close-wait|last-ack|listening|closing}\n\
    ";
