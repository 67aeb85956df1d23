//! Usage texts, in tc's notation.

pub const TC: &str = "\
Usage:\ttc [ OPTIONS ] OBJECT { COMMAND | help }
       tc [ -force ] -batch FILE
where  OBJECT := { qdisc | class | filter | chain | action | monitor }
       OPTIONS := { -s[tatistics] | -d[etails] | -r[aw] | -p[retty] | -j[son] | -iec |
                    -g[raph] | -o[neline] | -N[umeric] | -br[ief] | -b[atch] FILE | -V[ersion] }
";

pub const MONITOR: &str = "\
Usage: tc [-timestamp [-tshort] monitor
";

pub const EXEC: &str = "\
Usage: tc exec [ EXEC_TYPE ] [ help | OPTIONS ]
where  EXEC_TYPE := { bpf }
";

pub const QDISC: &str = "\
Usage: tc qdisc [ add | del | replace | change | show ] dev STRING
       tc qdisc { add | change | replace | link | del } dev DEV
          { root | ingress | clsact | parent CLASSID } [ handle QHANDLE ]
          [ estimator INTERVAL TIME_CONSTANT ] [ stab STAB_OPTIONS ]
          [ KIND [ OPTIONS | help ] ]
       tc qdisc show [ dev DEV ] [ root | ingress | parent CLASSID | handle QHANDLE ] [ invisible ]
KIND := { pfifo | bfifo | pfifo_fast | prio | tbf | sfq | htb | ... }
";

pub const CLASS: &str = "\
Usage: tc class [ add | del | change | replace | show ] dev STRING
       tc class { add | change | replace | del } dev DEV { root | parent CLASSID } [ classid CLASSID ]
          [ estimator INTERVAL TIME_CONSTANT ] [ KIND [ OPTIONS | help ] ]
       tc class show [ dev DEV ] [ root | parent CLASSID ] [ qdisc QHANDLE ] [ classid CLASSID ]
KIND := { htb | ... }
";

pub const FILTER: &str = "\
Usage: tc filter [ add | del | change | replace | show ] [ dev STRING ]
       tc filter { add | change | replace | del | get } { dev DEV | block INDEX }
          { root | ingress | egress | parent CLASSID } [ protocol PROTO ] [ pref PRIO ]
          [ chain INDEX ] [ handle FILTERID ] [ estimator INTERVAL TIME_CONSTANT ]
          [ KIND [ OPTIONS | help ] ]
       tc filter show { dev DEV [ root | ingress | egress | parent CLASSID ] | block INDEX }
          [ pref PRIO ] [ protocol PROTO ] [ chain INDEX ]
KIND := { u32 | fw | flower | matchall | basic | ... }
";

pub const CHAIN: &str = "\
Usage: tc chain [ add | del | get | show ] [ dev STRING ]
          { root | ingress | egress | parent CLASSID } [ chain INDEX ] [ KIND TEMPLATE ]
       tc chain show { dev DEV [ root | ingress | egress | parent CLASSID ] | block INDEX } [ chain INDEX ]
";

pub const ESTIMATOR: &str = "Usage: ... estimator INTERVAL TIME-CONST\n";

pub const STAB: &str = "\
Usage: ... stab [ mtu BYTES ] [ tsize SLOTS ] [ mpu BYTES ]
                [ overhead BYTES ] [ linklayer TYPE ]
";
