//! Shaping scripts from Debian's packages, unchanged: fetched when the test runs, never kept in this project. Skipped aloud where they
//! cannot be had.

use crate::golden;
use crate::material;

use golden::Golden;
use material::{fetched, text};
use penstock_host::{Files, Host, Output};
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Machine, Script, run};
use std::path::PathBuf;

/// The unpacked package; `None` where it cannot be fetched.
fn package(name: &str) -> Option<PathBuf> {
    let unpack = ["sh", "-c", "dpkg-deb -x *.deb files"];
    Some(fetched(&format!("debian-{name}"), &[&["apt-get", "download", "-q", name], &unpack])?.join("files"))
}

fn machine(kernel: Kernel) -> Host {
    let mut host = Host::new("penstock", kernel, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    host
}

fn exec(host: &mut Host, script: &Script) -> (i32, Kept) {
    let mut kept = Kept::default();
    let status = run(script, &mut At { host, now: Time::ZERO }, &mut kept).unwrap();
    (status, kept)
}

/// A machine that refuses nothing: what a script would do if all went well.
struct Willing(Host);

impl Machine for Willing {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        Output { status: 0, stderr: String::new(), ..self.0.command(words, files, Time::ZERO) }
    }
}

#[test]
fn wondershaper_1_1a() {
    let Some(files) = package("wondershaper") else { return };
    let mut script = Script {
        text: text(files.join("sbin/wondershaper")),
        name: "/sbin/wondershaper".to_owned(),
        ..Script::default()
    };
    script.args = ["eth0", "3000", "500"].map(str::to_owned).into();
    let mut kept = Kept::default();
    let status = run(&script, &mut Willing(machine(Kernel::V6_12)), &mut kept);
    assert_eq!((status, kept.stderr.as_str(), kept.commands.len()), (Ok(0), "", 17));
    let mut host = machine(Kernel::V6_12);
    script.args = ["eth0", "3000", "500"].map(str::to_owned).into();
    let (status, kept) = exec(&mut host, &script);
    let refused: Vec<_> =
        kept.commands.iter().filter(|c| c.output.status != 0).map(|c| c.words.join(" ")).collect();
    assert_eq!(
        (status, refused),
        (0, vec!["tc qdisc del dev eth0 root".to_owned(), "tc qdisc del dev eth0 ingress".to_owned()]),
        "{}",
        kept.stderr
    );
    let show = |host: &mut Host, what: &str| host.exec(&format!("tc {what} dev eth0"), Time::ZERO).stdout;
    let qdiscs = show(&mut host, "qdisc show");
    for start in [
        "qdisc cbq 1: root ",
        "qdisc sfq 10: parent 1:10 ",
        "qdisc sfq 20: parent 1:20 ",
        "qdisc sfq 30: parent 1:30 ",
        "qdisc ingress ffff: parent ffff:fff1 ",
    ] {
        assert!(qdiscs.lines().any(|l| l.starts_with(start)), "{start}\n{qdiscs}");
    }
    let classes = show(&mut host, "class show");
    for (class, rate) in
        [("1:1 ", "500Kbit"), ("1:10 ", "500Kbit"), ("1:20 ", "450Kbit"), ("1:30 ", "400Kbit")]
    {
        let there =
            |l: &str| l.starts_with(&format!("class cbq {class}")) && l.contains(&format!("rate {rate} "));
        assert!(classes.lines().any(there), "{class}{rate}\n{classes}");
    }
    script.args = ["clear", "eth0"].map(str::to_owned).into();
    let (status, kept) = exec(&mut host, &script);
    assert_eq!((status, kept.stdout.as_str()), (0, "Wondershaper queues have been cleared.\n"));
    assert!(show(&mut host, "qdisc show").starts_with("qdisc pfifo_fast 0: root"));
}

const FIREQOS: &str = "\
interface eth0 world-in input rate 10500kbit adsl remote pppoe-llc
   class voip commit 100kbit pfifo
      match udp ports 5060
   class ssh
      match tcp sport 22
   class default
interface eth0 world-out output rate 800kbit adsl remote pppoe-llc
   class voip commit 100kbit pfifo
      match udp ports 5060
   class ssh
      match tcp dport 22
   class default
";

#[test]
fn fireqos_3_1_7() {
    let (Some(files), Some(common)) = (package("fireqos"), package("firehol-common")) else { return };
    let at = "/usr/lib/firehol";
    let mut lent = vec![("/etc/firehol/fireqos.conf".to_owned(), FIREQOS.to_owned())];
    for (folder, name) in [
        (&common, "install.config"),
        (&common, "functions.common"),
        (&common, "services.common"),
        (&files, "services.fireqos"),
    ] {
        lent.push((format!("{at}/{name}"), text(folder.join(format!("usr/lib/firehol/{name}")))));
    }
    let script = Script {
        text: text(files.join("usr/lib/firehol/fireqos")),
        name: format!("{at}/fireqos"),
        args: vec!["start".to_owned()],
        files: lent,
        ..Script::default()
    };
    let mut kept = Kept::default();
    let status = run(&script, &mut Willing(machine(Kernel::V6_12)), &mut kept);
    let applied = "Traffic is classified:\n\n      - on 2 interfaces\n      - to 6 classes\n      - by 4 FireQOS matches";
    assert!(kept.stderr.contains(applied), "{status:?}\n{}", kept.stderr);
    let given: Vec<String> = kept.commands.iter().map(|c| c.words.join(" ")).collect();
    for command in [
        "ip link add dev eth0-ifb name eth0-ifb type ifb",
        "tc qdisc add dev eth0-ifb root handle 1: stab linklayer adsl overhead 26 mtu 1492 htb default 8000 r2q 8",
        "tc filter add dev eth0 parent ffff: protocol all prio 39999 u32 match u32 0 0 action mirred egress redirect dev eth0-ifb",
        "tc class add dev eth0-ifb parent 1:1 classid 1:12 htb rate 105kbit ceil 10500kbit prio 1 quantum 1492",
        "tc qdisc add dev eth0 root handle 1: stab linklayer adsl overhead 26 mtu 1492 htb default 8000 r2q 1",
        "tc class add dev eth0 parent 1:1 classid 1:11 htb rate 100kbit ceil 800kbit prio 0 quantum 1492",
        "tc filter add dev eth0 parent 1:0 protocol ip prio 20 u32 match ip protocol 6 0xff match ip dport 22 0xffff flowid 1:12",
    ] {
        assert!(given.iter().any(|c| c == command), "{command}\n{}", given.join("\n"));
    }
    let golden = Golden::open("fireqos", &["eth0"], &["eth0-ifb"]);
    let mut host = golden.machine();
    let (status, kept) = exec(&mut host, &script);
    assert_eq!(status, 0, "{}", kept.stderr);
    golden.check(&kept, &mut host);
    let shown = host.exec("tc class show dev eth0-ifb", Time::ZERO).stdout;
    assert!(
        shown.contains("class htb 1:12 parent 1:1 leaf 12: prio 1 rate 105Kbit ceil 10500Kbit"),
        "{shown}"
    );
}
