//! Scripts as people write them, on a machine of ours.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Script, run};

fn machine() -> Host {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    host
}

fn exec(text: &str, args: &[&str]) -> (i32, Kept, Host) {
    let mut host = machine();
    let mut kept = Kept::default();
    let args = args.iter().map(|&a| a.to_owned()).collect();
    let script = Script { text: text.to_owned(), name: "shape.sh".to_owned(), args, ..Script::default() };
    let status = run(&script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept).unwrap();
    (status, kept, host)
}

fn show(host: &mut Host, command: &str) -> String {
    host.exec(command, Time::ZERO).stdout
}

#[test]
fn loops_functions_here_documents_and_pipelines_act_on_the_machine() {
    let (status, kept, mut host) = exec(
        r#"#!/bin/bash
DEV=$1
add() { tc class add dev "$DEV" parent 1: classid 1:$1 htb rate ${2}mbit; }
tc qdisc add dev $DEV root handle 1: htb default 10
for i in $(seq 1 3); do add $i $((i * 2)); done
tc -b - <<END
class add dev $DEV parent 1: classid 1:10 htb rate 1mbit
qdisc add dev $DEV parent 1:10 handle 10: sfq
END
echo "qdisc add dev $DEV parent 1:1 handle 11: prio" | tc -b -
n=$(tc class show dev $DEV | grep -c htb)
last=$(tc class show dev $DEV | awk '/htb 1:3 /{print $NF}' | sed 's/b$//')
echo "$n classes, $last"
[ "$n" -eq 4 ] && echo "`echo right`"
"#,
        &["eth0"],
    );
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    assert_eq!(kept.stdout, "4 classes, 1599\nright\n");
    assert!(show(&mut host, "tc qdisc show dev eth0").contains("qdisc prio 11: parent 1:1"));
    assert!(show(&mut host, "tc qdisc show dev eth0").contains("qdisc sfq 10: parent 1:10"));
    let lines: Vec<u32> = kept.commands.iter().map(|c| c.line).collect();
    assert_eq!(lines[..5], [4, 3, 3, 3, 6], "in a function, the line that stands there");
}

#[test]
fn a_refusal_has_its_place_in_the_script() {
    let (status, kept, _) =
        exec("X=1\nfor d in eth0; do\n  tc qdisc add dev $d root tbf rate 1mbit\ndone\n", &[]);
    assert_eq!(status, 1);
    assert!(kept.stderr.starts_with("tbf: the \"burst\" parameter is mandatory.\n"), "{}", kept.stderr);
    let found = &kept.commands[0].output.diagnostics[0];
    assert_eq!((found.file.as_str(), found.line), ("shape.sh", 3));
    assert_eq!(found.source, "  tc qdisc add dev $d root tbf rate 1mbit");
}

#[test]
fn nothing_outside_the_machine_is_touched() {
    let outside = std::env::temp_dir().join(format!("penstock-outside-{}", std::process::id()));
    let text = format!(
        "cd /tmp; echo x > mine; cat mine; echo y > {0}; echo z > /etc/motd; cat /etc/motd; curl http://x; apt-get update",
        outside.display()
    );
    let (status, kept, _) = exec(&text, &[]);
    assert_eq!(status, 126);
    // What it writes is the machine's own, wherever it lies.
    assert_eq!(kept.stdout, "x\nz\n");
    assert!(!outside.exists());
    assert!(std::fs::read("/etc/motd").map_or(true, |found| found != b"z\n"));
    assert!(
        kept.stderr.contains("curl: not started: a script here acts on the virtual machine only"),
        "{}",
        kept.stderr
    );
    assert!(kept.stderr.contains("apt-get: not started"), "{}", kept.stderr);
}

#[test]
fn settings_and_devices_are_files() {
    let (status, kept, host) = exec(
        "echo 1 > /proc/sys/net/ipv4/ip_forward\ncat /proc/sys/net/ipv4/ip_forward\nls /sys/class/net\n\
         [ -d /sys/class/net/eth1 ] && [ ! -e /sys/class/net/eth7 ] && [ -x /sbin/tc ] && echo there\n",
        &[],
    );
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    assert_eq!(kept.stdout, "1\neth0\neth1\nlo\nthere\n");
    assert!(host.forwards());
}

#[test]
fn the_same_each_time() {
    let text =
        "echo $RANDOM $RANDOM; date; mktemp; sleep 100; id -u; echo $UID; cd /tmp; x=$(mktemp -d a.XX~); echo $x"
            .replace('~', "X");
    let (status, first, _) = exec(&text, &[]);
    assert_eq!((status, first.stderr.as_str()), (0, ""));
    assert_eq!(first, exec(&text, &[]).1);
    assert!(first.stdout.ends_with("/tmp.0000000001\n0\n0\na.002\n"), "{}", first.stdout);
}

#[test]
fn lines_are_known_under_set_u_and_not_under_a_trap_of_the_script_s_own() {
    let lines = |text: &str| exec(text, &[]).1.commands.iter().map(|c| c.line).collect::<Vec<_>>();
    assert_eq!(lines("set -eu\nf() {\n  tc qdisc show\n}\nf\ntc qdisc show | cat\n"), [3, 6]);
    assert_eq!(lines("trap 'n=1' DEBUG\ntc qdisc show\n"), [0]);
    assert_eq!(lines("# trap x DEBUG\necho 'DEBUG trap'; tc qdisc show\n"), [2]);
}

#[test]
fn a_script_in_another_language_is_named() {
    for (first, named) in [
        ("#!/usr/bin/perl -w", Some("/usr/bin/perl -w")),
        ("#!/usr/bin/env python3", Some("/usr/bin/env python3")),
        ("#!/usr/bin/env -S bash -e", None),
        ("#! /bin/sh", None),
        ("# no program", None),
    ] {
        let script = Script { text: format!("{first}\necho x\n"), name: "x".to_owned(), ..Script::default() };
        let done = run(&script, &mut At { host: &mut machine(), now: Time::ZERO }, &mut Kept::default());
        match named {
            Some(program) => assert!(done.clone().unwrap_err().contains(program), "{first}: {done:?}"),
            None => assert_eq!(done, Ok(0), "{first}"),
        }
    }
}

#[test]
fn a_script_finds_itself_and_its_neighbours_by_a_path_of_any_form() {
    for (name, zero) in
        [("s.sh", "./s.sh"), ("../opt/s.sh", "../opt/s.sh"), ("/opt/a b/s.sh", "/opt/a b/s.sh")]
    {
        let beside = match name.rsplit_once('/') {
            Some(("../opt", _)) => "/opt/lib.sh".to_owned(),
            Some((folder, _)) => format!("{folder}/lib.sh"),
            None => "/root/lib.sh".to_owned(),
        };
        let text = "[ -n \"$1\" ] && { echo called $1; exit 3; }\n. \"$(dirname \"$0\")/lib.sh\"\necho $zero $0\n\"$0\" again";
        let script = Script {
            text: text.to_owned(),
            name: name.to_owned(),
            files: vec![(beside, "zero=lib".to_owned())],
            ..Script::default()
        };
        let mut kept = Kept::default();
        let status = run(&script, &mut At { host: &mut machine(), now: Time::ZERO }, &mut kept);
        assert_eq!(
            (status, kept.stdout),
            (Ok(3), format!("lib {zero}\ncalled again\n")),
            "{name}: {}",
            kept.stderr
        );
    }
}

#[test]
fn what_scripts_look_for_before_they_begin() {
    let (status, kept, _) = exec(
        r#"set -eu -o pipefail
TC=$(which tc); [ -x "$TC" ] && [ -x /sbin/tc ] && command -v ip > /dev/null && echo "$TC"
[ "$(id -u)" -eq 0 ] || exit 1
modprobe ifb numifbs=1; lsmod | grep -q '^ifb ' && grep -q ^sch_htb /proc/modules && echo loaded
logger -t shaper "starting"; renice -n 5 $$ > /dev/null
ip -o link | awk -F': ' '{print $2}' | paste -sd,
for path in /sys/class/net/eth*; do echo "${path##*/} $(cat $path/mtu) $(cat $path/operstate)"; done
awk -F: 'NR > 2 { gsub(/ /, "", $1); n++ } END { print n }' /proc/net/dev
ethtool -K eth0 tso off gso off gro off
ethtool -k eth0 | grep -c ': off'
read -r _ _ version _ < /proc/version; [ "$version" = "$(uname -r)" ] && echo same version
[ "$(nproc)" -ge 1 ] && [ -d /proc/sys/net ] && sysctl -n net.core.default_qdisc
"#,
        &[],
    );
    assert_eq!((status, kept.stderr.as_str()), (0, ""), "{}", kept.stdout);
    let want = "/usr/sbin/tc\nloaded\nlo,eth0,eth1,ifb0\neth0 1500 up\neth1 1500 up\n4\n7\nsame version\npfifo_fast\n";
    assert_eq!(kept.stdout, want);
}

#[test]
fn commands_come_to_tc_by_every_way_there_is() {
    let (status, kept, mut host) = exec(
        r#"
cleanup() { [ -n "${1:-}" ] && tc qdisc del dev eth1 root; echo "cleanup $?"; }
trap 'cleanup end' EXIT
conf=/run/link.conf
printf 'RATE=%d\nCLASSES="10 20 30"\n' 6 > $conf; source $conf
tc -batch /dev/stdin <<< "qdisc add dev eth0 root handle 1: htb default 30"
declare -A share=([10]=3 [20]=2 [30]=1)
for id in $CLASSES; do echo "class add dev eth0 parent 1: classid 1:$id htb rate $((RATE * share[$id] / 6))mbit"; done > /run/batch
cat /run/batch | tc -b - || exit 9
tc -b /run/batch || tc -force -b - < /run/batch
tc -b - <<-END
	qdisc add dev eth1 root handle 2: prio
	filter add dev eth1 parent 2: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 2:1
	END
tc class show dev eth0 | while read -r _ kind id rest; do
  case $rest in *"rate 1Mbit"*) echo "$kind $id last" ;; *"rate 3Mbit"*) echo "$kind $id first" ;; esac
done
sum=$(tc class show dev eth0 | sed -n 's/.*rate \([0-9]*\)Mbit.*/\1/p' | paste -sd+ | bc)
echo "sum $sum $(expr $sum / 2)"
tc -s qdisc show dev eth1 | awk '/Sent/ { print $2, $3; exit }'
env PATH=/sbin tc qdisc show dev eth1 | head -1 | cut -d' ' -f1-4; nice -n 5 /usr/sbin/tc filter show dev eth1 | grep -c flowid
exit 5
"#,
        &[],
    );
    assert_eq!(status, 5, "{}", kept.stderr);
    let want = "htb 1:10 first\nhtb 1:30 last\nsum 6 3\n0 bytes\nqdisc prio 2: root\n1\ncleanup 0\n";
    let mut lines: Vec<&str> = kept.stdout.lines().collect();
    lines[..2].sort_unstable();
    assert_eq!(lines.join("\n") + "\n", want);
    let exists = "Error: Exclusivity flag on, cannot modify.\n";
    assert_eq!(
        kept.stderr.matches("RTNETLINK answers: File exists").count() + kept.stderr.matches(exists).count(),
        4,
        "{}",
        kept.stderr
    );
    assert!(show(&mut host, "tc qdisc show dev eth1").starts_with("qdisc pfifo_fast"));
}

#[test]
fn plain_scripts_mean_the_same_without_the_interpreter() {
    let cases = [
        "#!/bin/sh\nDEV=eth0\nRATE=\"10mbit\" # of the line\ntc qdisc del dev $DEV root 2>/dev/null\n\
         tc qdisc add dev \"$DEV\" root handle 1: htb default 10\n\
         tc class add dev ${DEV} parent 1: classid 1:10 htb rate ${RATE}\necho done $DEV\n",
        "set -e\ntc qdisc del dev eth0 root 2>/dev/null || true\ntc qdisc add dev eth0 root sfq\n\
         tc qdisc add dev eth0 root prio\ntc qdisc add dev eth1 root sfq\n",
        "set -euo pipefail\nexport D=eth1\nD2='eth0'\ntc qdisc add dev $D root 'sfq' perturb 10\n\
         tc qdisc show dev $D2 >/dev/null\ntc qdisc show dev $D\nfalse=1\n",
        "tc qdisc add dev eth0 root foo\ntc qdisc add dev eth0 root tbf rate 1mbit > /dev/null 2>&1\n:\n",
        "tc qdisc add dev eth0 root foo || :\ntc class show dev eth9 &>/dev/null\ntrue\n",
        "X=\"\"\ntc qdisc add dev eth0 root sfq\necho \"a  b\" 'c' # x\nip link set eth0 txqueuelen 10",
        "X=1\nX=2\ntc qdisc add dev eth0 root handle $X: prio bands \"4\"\ntc qdisc show dev eth0\n",
    ];
    for text in cases {
        let (status, kept, mut host) = exec(text, &[]);
        let (other, interpreted, mut there) = exec(&format!("{text}\n(exit $?)\n"), &[]);
        assert_eq!(status, other, "{text}");
        assert_eq!((kept.stdout, kept.stderr), (interpreted.stdout, interpreted.stderr), "{text}");
        assert_eq!(kept.commands, interpreted.commands, "{text}");
        for device in ["eth0", "eth1"] {
            let all = format!("tc qdisc show dev {device}");
            assert_eq!(show(&mut host, &all), show(&mut there, &all), "{text}");
        }
    }
}
