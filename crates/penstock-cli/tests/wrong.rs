//! Mistakes that people make in an experiment: each is told with its place and what to do, and the status says that nothing came of it.

use std::path::Path;
use std::process::Command;

/// Two machines and a ping.
const PAIR: &str = r#"duration = "3s"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
[[app]]
on = "a"
run = "ping -c 2 10.0.0.2"
"#;

/// What is written in place of what, in which line it is told, and what is said: first the fault, then what to do.
const WRONG: &[(&str, &str, u32, &str, &str)] = &[
    // Numbers and units.
    ("\"3s\"", "\"-3s\"", 1, "\"-3s\" is not a duration", "duration = \"50ms\""),
    ("\"3s\"", "\"0s\"", 1, "duration is out of range", "write more than 0s"),
    ("\"3s\"", "3", 1, "\"3\" is not a duration", "write duration = \"3s\""),
    ("\"10mbit\"", "\"10 Mbit/s\"", 8, "is not a rate", "rate = \"10mbit\""),
    ("\"10mbit\"", "10", 8, "\"10\" is not a rate", "it has no unit"),
    ("\"10mbit\"", "\"0mbit\"", 8, "is not a rate", "the minimum is 8bit"),
    (
        "\"10mbit\"",
        "\"10Mbps\"",
        8,
        "\"10Mbps\" is 80 Mbit/s to tc, whose bps are bytes",
        "write rate = \"10mbit\", or \"10mbps\"",
    ),
    ("\"10mbit\"", "\"10mbit\"\ndelay = 20", 9, "\"20\" is not a duration", "or \"20ms\""),
    ("\"10mbit\"", "\"10mbit\"\ndelay = \"-5ms\"", 9, "is not a duration", "delay = \"50ms\""),
    ("\"10mbit\"", "\"10mbit\"\ndelay = \"99999h\"", 9, "is not a duration", "write a number and s, ms"),
    ("\"10mbit\"", "\"10mbit\"\nloss = \"lots\"", 9, "is not a probability", "loss = \"1%\""),
    ("\"10mbit\"", "\"10mbit\"\nloss = 5", 9, "is not a probability", "loss = \"1%\""),
    (
        "\"10mbit\"",
        "\"10mbit\"\nbuffer = \"100ms\"",
        9,
        "has no key \"buffer\"",
        "there are name, ends, rate",
    ),
    ("\"3s\"", "\"3s\"\nsample = \"1us\"", 2, "sample is out of range", "write 100us or more"),
    ("\"3s\"", "\"3s\"\nseed = \"lucky\"", 2, "seed is a string", "write a whole number"),
    // Networks.
    ("[\"a:eth0\", \"b:eth0\"]", "[\"a:eth0\"]", 7, "a link has two ends or more", "write ends ="),
    (
        "[\"a:eth0\", \"b:eth0\"]",
        "[\"a:eth0\", \"a:eth0\"]",
        7,
        "a:eth0 is both ends of this link",
        "a link joins two devices",
    ),
    ("[\"a:eth0\", \"b:eth0\"]", "[\"a\", \"b\"]", 7, "\"a\" is not an end of a link", "write \"a:eth0\""),
    ("[\"a:eth0\", \"b:eth0\"]", "[\"a:eth0\", \"c:eth0\"]", 7, "there is no host \"c\"", "did you mean"),
    ("[\"a:eth0\", \"b:eth0\"]", "[\"a:eth0\", \"b:eth1\"]", 7, "b has no device \"eth1\"", "b:eth0"),
    ("10.0.0.2/24", "10.0.0.2/33", 5, "is not an address with a prefix length", "write eth0 ="),
    ("10.0.0.2/24", "10.0.0.256/24", 5, "is not an address with a prefix length", "write eth0 ="),
    ("10.0.0.2/24", "10.0.0.2", 5, "is not an address with a prefix length", "eth0 = \"10.0.0.2/24\""),
    ("10.0.0.2/24", "10.0.0.1/24", 5, "and so has a:eth0", "give each its own"),
    (
        "10.0.0.2/24",
        "10.0.0.0/24",
        5,
        "eth0: 10.0.0.0/24 stands for the network, not for a machine",
        "eth0 = \"10.0.0.1/24\"",
    ),
    ("10.0.0.2/24", "10.0.0.255/24", 5, "stands for everybody in its network", "eth0 = \"10.0.0.254/24\""),
    (
        "10.0.0.2/24",
        "10.0.1.2/24",
        11,
        "nobody on the link of a:eth0 has the address 10.0.0.2",
        "b:eth0 has 10.0.1.2/24",
    ),
    (
        "[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n",
        "",
        8,
        "a:eth0 is at no link",
        "add a [[link]]",
    ),
    ("[host.b]\n", "[host.b]\nkernel = \"5.4\"\n", 5, "unknown kernel profile \"5.4\"", "\"6.12\""),
    (
        "[host.b]\n",
        "[host.b]\nvia = \"192.168.1.1\"\n",
        5,
        "b has no device in 192.168.1.1's network",
        "10.0.0.2/24",
    ),
    ("[host.b]\n", "[host.\"u{1..}\"]\n", 4, "\"1..\" is not a range of numbers", "1..50"),
    // Programs and flows.
    ("on = \"a\"", "on = \"A\"", 10, "there is no host \"A\"", "did you mean \"a\"?"),
    ("on = \"a\"", "on = \"a\"\nat = \"1\"", 11, "\"1\" is not a duration", "at = \"1s\""),
    ("on = \"a\"", "on = \"a\"\nat = \"9s\"", 10, "this app starts at 9s", "duration is 3s"),
    ("run = \"ping -c 2 10.0.0.2\"", "", 9, "[[app]] has no \"run\"", "run = \"ping"),
    ("ping -c 2 10.0.0.2", "", 11, "run is empty", "write run ="),
    ("ping -c 2 10.0.0.2", "ping -Z 10.0.0.2", 11, "invalid option -- 'Z'", "may_fail"),
    ("ping -c 2 10.0.0.2", "ping -c 2 bb", 11, "nobody is called \"bb\"", "the name of a [host]"),
    ("ping -c 2 10.0.0.2", "fping 10.0.0.2", 11, "there is no program \"fping\"", "there are ping, iperf"),
    (
        "ping -c 2 10.0.0.2",
        "iperf3 -c 10.0.0.2",
        11,
        "nobody on b listens at tcp port 5201",
        "run = \"iperf3 -s\"",
    ),
    (
        "[[app]]",
        "[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"a\"\nload = \"greedy\"\n[[app]]",
        9,
        "from one host to another",
        "name two hosts",
    ),
    (
        "[[app]]",
        "[[flow]]\nname = \"f\"\nfrom = \"a\"\nload = \"greedy\"\n[[app]]",
        9,
        "[[flow]] has no \"to\"",
        "to = \"b\"",
    ),
    (
        "[[app]]",
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\nproto = \"sctp\"\nload = \"1mbit\"\n[[app]]",
        12,
        "has no key \"proto\"",
        "there are from, to",
    ),
    (
        "[[app]]",
        "[[flow]]\nfrom = \"a\"\nto = \"b\"\ndscp = \"EFF\"\nload = \"1mbit\"\n[[app]]",
        12,
        "no code point is called \"EFF\"",
        "did you mean \"EF\"?",
    ),
    (
        "[[app]]",
        "[[expect]]\nwhat = \"b ping rtt\"\nvalue = \"<5ms\"\n[[app]]",
        10,
        "begins with no app",
        "\"a ping\"",
    ),
    (
        "[[app]]",
        "[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"50ms..1ms\"\n[[app]]",
        11,
        "is not a range of numbers",
        "the smaller one first",
    ),
    (
        "[[app]]",
        "[[test]]\nrun = \"rrull\"\nfrom = \"a\"\nto = \"b\"\n[[app]]",
        10,
        "flent has no test \"rrull\"",
        "did you mean \"rrul\"?",
    ),
    ("[[app]]", "[[capture]]\non = [\"c:eth0\"]\n[[app]]", 10, "there is no host \"c\"", "did you mean"),
    ("[[app]]", "[app]", 9, "app is not a list of tables", "[[app]] with two brackets"),
    ("duration", "durration", 1, "has no key \"durration\"", "did you mean \"duration\"?"),
    // Setups.
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"tc qdisc add dev eth0 root fqcodel\"]\n",
        5,
        "Specified qdisc kind is unknown",
        "did you mean fq_codel?",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\"]\n",
        5,
        "No such file or directory",
        "tc qdisc add dev eth0 root handle 1: htb",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"tc qdisc add dev eth0 root tbf rate 1mbit\"]\n",
        5,
        "\"burst\" parameter is mandatory",
        "burst 5k",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"tc qdisc add dev eth1 root fq_codel\"]\n",
        5,
        "Cannot find device \"eth1\"",
        "no such device",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"iptables -A FORWRD -j DROP\"]\n",
        5,
        "No chain/target/match by that name",
        "no chain FORWRD",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"sysctl -w net.ipv4.ip_forwrd=1\"]\n",
        5,
        "cannot stat",
        "did you mean net.ipv4.ip_forward?",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"apt-get install iperf\"]\n",
        5,
        "apt-get: not started",
        "--on kernel",
    ),
    (
        "[host.b]\n",
        "[host.b]\nsetup = [\"@nope.sh\"]\n",
        5,
        "cannot read nope.sh",
        "read from the folder of x.toml",
    ),
    // Links and switches.
    ("\"b:eth0\"", "\"b:eth7\"", 7, "b has no device \"eth7\"", "did you mean \"b:eth0\"?"),
    (
        "[[link]]",
        "[[link]]\ndown = [{ from = \"2s\", to = \"1s\" }]",
        7,
        "it ends before it begins",
        "write { from =",
    ),
    ("[[link]]", "[[link]]\nloss = \"150%\"", 7, "\"150%\" is not a probability", "write 0% to 100%"),
    ("[[link]]", "[[link]]\ndelay = 10", 7, "\"10\" is not a duration", "it has no unit"),
    ("[host.b]", "[switch.s]\nrate = \"1gbit\"\n[host.b]", 4, "[switch.s] has 0 ports", "write ports ="),
    // Tables of another type, and names.
    ("[[link]]", "[link]", 6, "link is not a list of tables", "write [[link]] with two brackets"),
    ("[[app]]", "[app]", 9, "app is not a list of tables", "write [[app]] with two brackets"),
    (
        "[host.b]\neth0 = \"10.0.0.2/24\"",
        "[host]\nb = \"10.0.0.2/24\"",
        5,
        "[host.b] is a string, not a table",
        "write { … }",
    ),
    ("[host.b]", "[host.\"b b\"]", 4, "a host cannot be called \"b b\"", "use letters, digits"),
    (
        "[host.b]",
        "[host.\"u{1..0}\"]\neth0 = \"10.0.1.1/24\"\n[host.b]",
        4,
        "the range 1..0 is empty",
        "write the smaller number first",
    ),
    (
        "[host.b]",
        "[host.b]\niperf = 2.3",
        5,
        "iperf: \"2.3\" is unknown",
        "there are \"2.0\", \"2.1\", \"2.2\"",
    ),
    (
        "10.0.0.2/24",
        "10.0.0.255/24",
        5,
        "stands for everybody in its network",
        "write e.g. eth0 = \"10.0.0.254/24\"",
    ),
    // Programs and what they do.
    (
        "ping -c 2 10.0.0.2",
        "iperf3 -t 1",
        11,
        "must either be a client (-c) or server (-s)",
        "may_fail = true",
    ),
    (
        "ping -c 2 10.0.0.2",
        "iperf -c 10.0.0.2 -R",
        11,
        "-R is not simulated",
        "run the client on the other host",
    ),
    (
        "ping -c 2 10.0.0.2",
        "iperf -c 10.0.0.2 -e",
        11,
        "-e is not simulated",
        "write iperf = \"2.2\" in the [host]",
    ),
    ("ping -c 2 10.0.0.2", "iperf -c 10.0.0.2 -o x", 11, "-o is not simulated", "write > FILE in a script"),
    ("run = ", "after = \"nobody\"\nrun = ", 11, "after: there is no app \"nobody\"", "there are \"a ping\""),
    (
        "[[app]]",
        "[[test]]\nfrom = \"a\"\nto = \"b\"\nrun = \"rrull\"\n[[app]]",
        12,
        "flent has no test \"rrull\"",
        "did you mean \"rrul\"?",
    ),
    (
        "[[app]]",
        "[[capture]]\non = \"a:eth9\"\n[[app]]",
        10,
        "a has no device \"eth9\"",
        "did you mean \"a:eth0\"?",
    ),
    (
        "[[app]]",
        "[[expect]]\nwhat = 3\nvalue = \"<1s\"\n[[app]]",
        10,
        "what is a number, not text",
        "write what = \"3\"",
    ),
    (
        "duration",
        "base = \"x.toml\"\nduration",
        1,
        "files extend one another too deeply",
        "does one name itself?",
    ),
    // Files of another kind.
    (
        "duration",
        "#!/bin/sh\ntc qdisc show\nduration",
        1,
        "this is a shell script, not an experiment",
        "penstock check x.toml reads it",
    ),
    (
        "duration",
        "sudo tc qdisc show dev eth0\nduration",
        1,
        "this is a shell script",
        "setup = [\"@x.toml\"]",
    ),
    // Commands within a text of an experiment.
    (
        "[host.a]",
        "[host.a]\nsetup = \"\"\"\ntc qdisc show dev eth0\n\"\"\"\ncolour",
        6,
        "key with no value, expected `=`",
        "this is not TOML",
    ),
    (
        "duration",
        "base = \"nothing.toml\"\nduration",
        1,
        "cannot read nothing.toml",
        "read from the folder of x.toml",
    ),
];

#[test]
fn every_mistake_is_told_with_its_place_and_what_to_do() {
    let folder = std::env::temp_dir().join(format!("penstock-wrong-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut missed = Vec::new();
    for (from, to, line, fault, fix) in WRONG {
        assert!(PAIR.contains(from), "{from}");
        std::fs::write(folder.join("x.toml"), PAIR.replacen(from, to, 1)).unwrap();
        let done = run(&folder);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let at = format!("x.toml:{line}:");
        let told = said.lines().any(|l| l.starts_with(&at) && l.contains(fault)) && said.contains(fix);
        if done.status.success() || !told {
            missed.push(format!("{to:?}, wanted {at} … {fault} … {fix}: {:?}\n{said}", done.status.code()));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), WRONG.len(), missed.join("\n"));
}

#[test]
fn one_cause_is_one_message() {
    let folder = std::env::temp_dir().join(format!("penstock-once-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (from, to) in [("\"3s\"", "\"0s\""), ("\"b:eth0\"", "\"a:eth0\"")] {
        std::fs::write(folder.join("x.toml"), PAIR.replacen(from, to, 1)).unwrap();
        let said = String::from_utf8_lossy(&run(&folder).stderr).into_owned();
        assert_eq!(said.matches("x.toml:").count(), 1, "{to}: {said}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn files_of_another_kind() {
    let folder = std::env::temp_dir().join(format!("penstock-kind-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let said = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        let done = command.args(args).current_dir(&folder).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(PAIR.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    std::fs::write(folder.join("wide.toml"), wide).unwrap();
    std::fs::write(folder.join("x.toml"), PAIR.replace("[host.b]", "setup = \"@dos.sh\"\n[host.b]")).unwrap();
    let line = "tc qdisc add dev eth0 root tbf rate 1mbit burst 10k latency 50ms\r\n";
    std::fs::write(folder.join("dos.sh"), format!("#!/bin/sh\r\n{line}")).unwrap();
    for (args, words) in [
        (&["run", "wide.toml"][..], "cannot read wide.toml: it is UTF-16; save it as UTF-8"),
        (&["run", "x.toml"], "sed -i 's/\\r$//' dos.sh"),
        (&["run", "."], "it is a folder"),
        (&["report", "x.toml"], "x.toml is not in a run folder: there is no record.json beside it"),
        (&["compare", "x.toml", "x.toml"], "x.toml is not in a run folder"),
        (&["compare", "zzzzzzzz", "x.toml"], "cannot read zzzzzzzz: there is no such folder"),
        (&["shell", "x.toml"], "x.toml is an experiment, not a script: penstock run x.toml runs it"),
        (&["explain", "x.toml", "--dev", "eth0", "--all"], "x.toml is an experiment, not a script"),
        (&["diff", "x.toml", "dos.sh", "--dev", "eth0"], "x.toml is an experiment, not a script"),
        (&["run", "dos.sh"], "this is a shell script, not an experiment"),
        (&["send", "127.0.0.1:99999", "--udp", "--for", "1s", "--rate", "1mbit"], "the port is --port"),
        (&["study", "rfc7928", "--aqm", "moon"], "--aqm \"moon\": Error: Specified qdisc kind is unknown."),
    ] {
        let said = said(args);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn run(folder: &Path) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(["run", "x.toml", "--quiet"]).current_dir(folder).output().unwrap()
}
