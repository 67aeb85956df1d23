//! Shaping scripts of other people, unchanged: htb.init, cbq.init, those of the LARTC HOWTO and of old iproute2. Fetched when the
//! test runs, never kept in this project, and skipped aloud where they cannot be had.

use crate::golden;
use crate::material;

use golden::Golden;
use material::{fetched, text};
use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Script, run};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A repository as it was at a commit.
fn repository(name: &str, url: &str, commit: &str) -> Option<PathBuf> {
    let slow = ["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=20"];
    let fetch = [&["git"][..], &slow, &["fetch", "-q", "--depth", "1", url, commit]].concat();
    fetched(name, &[&["git", "init", "-q"], &fetch, &["git", "checkout", "-q", "FETCH_HEAD"]])
}

/// The examples of iproute2 2.6.35: later versions left them out with cbq.
fn iproute2() -> Option<PathBuf> {
    let commit = "a130b49b6cea4650429a09acad6191980e42c41f";
    Some(repository("iproute2-2.6.35", "https://github.com/iproute2/iproute2", commit)?.join("examples"))
}

fn machine(devices: &[&str]) -> Host {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    for name in devices {
        host.add_device(name);
    }
    host
}

fn exec(host: &mut Host, script: &Script) -> (i32, Kept) {
    let mut kept = Kept::default();
    let status = run(script, &mut At { host, now: Time::ZERO }, &mut kept).unwrap();
    (status, kept)
}

fn show(host: &mut Host, command: &str) -> String {
    host.exec(command, Time::ZERO).stdout
}

/// The commands that were refused, and what they said first.
fn refused(kept: &Kept) -> Vec<String> {
    let said = |c: &penstock_shell::Given| {
        format!("{}: {}", c.words.join(" "), c.output.stderr.lines().next().unwrap_or_default())
    };
    kept.commands.iter().filter(|c| c.output.status != 0).map(said).collect()
}

#[track_caller]
fn starts(text: &str, starts: &[&str]) {
    for start in starts {
        assert!(text.lines().any(|l| l.starts_with(start)), "{start}\n{text}");
    }
}

/// The author's example for the LARTC HOWTO, with a mark, a realm and a time besides.
const HTB: &[(&str, &str)] = &[
    ("eth0", "DEFAULT=30\nR2Q=100\n"),
    ("eth0-2.root", "# all of it\nRATE=5Mbit\nBURST=15k\n"),
    ("eth0-2:10.www", "RATE=5Mbit\nBURST=15k\nLEAF=sfq\nRULE=*:80,\nMARK=3\n"),
    ("eth0-2:20.smtp", "RATE=3Mbit\nCEIL=5Mbit\nBURST=15k\nLEAF=sfq\nRULE=10.0.0.1:25\nREALM=2,3\n"),
    (
        "eth0-2:30.dfl",
        "RATE=1Kbit\nCEIL=5Mbit\nBURST=15k\nLEAF=pfifo\nLIMIT=20\nPRIO=3\nTIME=00:00-06:00;2Kbit/15k,4Mbit\n",
    ),
];

fn htb_init(version: &'static str, commit: &str, name: &str) {
    let folder = repository(&format!("htb.init-{version}"), "https://github.com/lbulej/htb.init", commit);
    let Some(folder) = folder else { return };
    let files = HTB.iter().map(|(n, t)| (format!("/etc/sysconfig/htb/{n}"), (*t).to_owned()));
    let script = |verb: &str| Script {
        text: text(folder.join("htb.init")),
        name: name.to_owned(),
        args: vec![verb.to_owned()],
        files: files.clone().collect(),
        ..Script::default()
    };
    let golden = Golden::open("htb_init", &["eth0"], &[]);
    let mut host = golden.machine();
    let (status, kept) = exec(&mut host, &script("compile"));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    starts(
        &kept.stdout,
        &[
            "/sbin/tc qdisc add dev eth0 root handle 1 htb default 30 r2q 100",
            "/sbin/tc class add dev eth0 parent 1:2 classid 1:20 htb rate 3Mbit ceil 5Mbit burst 15k",
            "/sbin/tc filter add dev eth0 parent 1:0 protocol ip prio 100 u32 match ip sport 80 0xffff classid 1:10",
        ],
    );
    // It compiles by calling itself into /var/cache, and then runs what it compiled.
    let (status, kept) = exec(&mut host, &script("start"));
    assert_eq!(status, 0, "{}{}", kept.stdout, kept.stderr);
    assert_eq!(
        refused(&kept),
        ["tc qdisc del dev eth0 root: Error: Cannot delete qdisc with handle of zero."]
    );
    let (cached, started) = (kept, &mut host);
    starts(
        &show(started, "tc filter show dev eth0"),
        &["filter parent 1: protocol ip pref 200 fw chain 0 handle 0x3 classid 1:10"],
    );
    golden.check(&cached, started);
    let (status, kept) = exec(started, &script("timecheck"));
    assert_eq!(
        (status, kept.stdout.as_str()),
        (0, "**HTB:  0:00: change on eth0:30 (1Kbit/5Mbit -> 2Kbit/4Mbit)\n")
    );
    for verb in ["list", "stats"] {
        let (status, kept) = exec(started, &script(verb));
        assert_eq!((status, kept.stderr.as_str()), (0, ""), "{verb}");
        starts(
            &kept.stdout,
            &[
                "### eth0: queueing disciplines",
                "class htb 1:30 parent 1:2 leaf 30: prio 3 rate 2Kbit ceil 4Mbit",
            ],
        );
    }
    let (status, kept) = exec(started, &script("restart"));
    assert_eq!((status, refused(&kept).len()), (0, 1), "{}{}", kept.stdout, kept.stderr);
    starts(
        &show(started, "tc class show dev eth0"),
        &["class htb 1:30 parent 1:2 leaf 30: prio 3 rate 1Kbit ceil 5Mbit"],
    );
    let (status, _) = exec(started, &script("stop"));
    assert_eq!(
        (status, show(started, "tc qdisc show dev eth0").as_str()),
        (0, "qdisc noqueue 0: root refcnt 2 \n")
    );
}

#[test]
fn htb_init_0_8_5() {
    htb_init("0.8.5", "0aa6d6a3c8ff306186de636027bbd41e0c583914", "/etc/init.d/htb.init");
}

#[test]
fn htb_init_0_8_6_called_from_its_own_folder() {
    htb_init("0.8.6", "323f000a32d850bcf977bec4033f2d197808878e", "htb.init");
}

const CBQ: &[(&str, &str)] = &[
    (
        "cbq-1280.My_first_shaper",
        "DEVICE=eth0,10Mbit,1Mbit\nRATE=128Kbit\nWEIGHT=10Kbit\nPRIO=5\nRULE=192.168.1.0/24\n",
    ),
    (
        "cbq-028.backbone-client",
        "DEVICE=eth1,10Mbit,1Mbit\nRATE=28Kbit\nWEIGHT=2Kbit\nPRIO=5\nLEAF=sfq\nMARK=5\nREALM=2,3\nRULE=192.168.1.1,\n\
         TIME=60123/18:00-06:00;256Kbit/25Kbit\n",
    ),
    ("avpkt", "AVPKT=1000\n"),
];

#[test]
fn cbq_init_0_7_3() {
    let Some(folder) = iproute2() else { return };
    let files = CBQ.iter().map(|(n, t)| (format!("/etc/sysconfig/cbq/{n}"), (*t).to_owned()));
    let script = |verb: &str| Script {
        text: text(folder.join("cbq.init-v0.7.3")),
        name: "./cbq.init-v0.7.3".to_owned(),
        args: vec![verb.to_owned()],
        files: files.clone().collect(),
        ..Script::default()
    };
    let mut host = machine(&["eth0", "eth1"]);
    let (status, kept) = exec(&mut host, &script("compile"));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    let eth0 = "\
/sbin/tc class add dev eth0 parent 1: classid 1:1280 cbq bandwidth 10Mbit rate 128Kbit weight 10Kbit prio 5 allot 1514 cell 8 maxburst 20 avpkt 1000 bounded
/sbin/tc qdisc add dev eth0 parent 1:1280 handle 1280 tbf rate 128Kbit buffer 10Kb/8 limit 15Kb mtu 1500
/sbin/tc filter add dev eth0 parent 1:0 protocol ip prio 100 u32 match ip dst 192.168.1.0/24 classid 1:1280
";
    assert!(kept.stdout.contains(eth0), "{}", kept.stdout);
    let (status, kept) = exec(&mut host, &script("start"));
    let none = "Error: Cannot delete qdisc with handle of zero.";
    assert_eq!(
        (status, refused(&kept)),
        (0, ["eth0", "eth1"].map(|d| format!("tc qdisc del dev {d} root: {none}")).to_vec()),
        "{}",
        kept.stdout
    );
    starts(
        &show(&mut host, "tc class show dev eth1"),
        &[
            "class cbq 1: root rate 10Mbit (bounded,isolated)",
            "class cbq 1:28 parent 1: leaf 28: rate 28Kbit (bounded) prio 5",
        ],
    );
    starts(
        &show(&mut host, "tc filter show dev eth1"),
        &[
            "filter parent 1: protocol ip pref 100 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:28",
            "filter parent 1: protocol ip pref 200 fw chain 0 handle 0x5 classid 1:28",
            "filter parent 1: protocol ip pref 300 route chain 0 fh 0x00020003 flowid 1:28 to 3 from 2",
        ],
    );
    starts(
        &show(&mut host, "tc qdisc show dev eth0"),
        &["qdisc cbq 1: root ", "qdisc tbf 1280: parent 1:1280 rate 128Kbit"],
    );
    // The script's clock stands at midnight of a Thursday.
    let (status, kept) = exec(&mut host, &script("timecheck"));
    assert_eq!((status, kept.stdout.as_str()), (0, ""), "{}", kept.stderr);
    let (status, kept) = exec(&mut host, &script("stats"));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    starts(&kept.stdout, &["### eth1: filtering rules", "  borrowed 0 overactions 0 avgidle "]);
    exec(&mut host, &script("stop"));
    assert!(show(&mut host, "tc qdisc show dev eth0").starts_with("qdisc pfifo_fast 0: root"));
}

/// The two scripts of the HOWTO's chapter "The Ultimate Traffic Conditioner", out of its DocBook text.
fn ultimate() -> Option<Vec<String>> {
    let commit = "83d50b88e3b3a91d56ff3af4722e5164b3291c02";
    let howto = text(repository("lartc", "https://github.com/andelf/lartc", commit)?.join("lartc.db"));
    let plain = |t: &str| t.replace("&#62;", ">").replace("&#60;", "<").replace("&#38;", "&");
    let screens =
        howto.split("<Screen>").filter_map(|s| s.split_once("</Screen>")).map(|(s, _)| s.trim_start());
    Some(screens.filter(|s| s.contains("The Ultimate Setup For Your Internet")).map(plain).collect())
}

#[test]
fn lartc_ultimate_conditioner_in_both_versions() {
    let Some(scripts) = ultimate() else { return };
    let [cbq, htb] = &scripts[..] else { panic!("{} scripts", scripts.len()) };
    let script = |text: &str| Script {
        text: text.to_owned(),
        name: "/etc/ppp/ip-up.d/shape".to_owned(),
        ..Script::default()
    };
    let mut host = machine(&["ppp0"]);
    let (status, kept) = exec(&mut host, &script(cbq));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    assert_eq!(refused(&kept).len(), 2, "only that there is nothing to delete: {:?}", refused(&kept));
    starts(
        &show(&mut host, "tc class show dev ppp0"),
        &[
            "class cbq 1:1 parent 1: rate 220Kbit (bounded,isolated) prio 5",
            "class cbq 1:20 parent 1:1 leaf 20: rate 198Kbit prio 2",
        ],
    );
    let golden = Golden::open("lartc_htb", &["ppp0"], &[]);
    let mut host = golden.machine();
    let (status, kept) = exec(&mut host, &script(htb));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    assert_eq!(refused(&kept).len(), 2, "{:?}", refused(&kept));
    golden.check(&kept, &mut host);
}

#[test]
fn wondershaper_1_1a_as_its_author_packed_it() {
    let commit = "83d50b88e3b3a91d56ff3af4722e5164b3291c02";
    let Some(folder) = repository("lartc", "https://github.com/andelf/lartc", commit) else { return };
    let archive = folder.join("wondershaper/wondershaper-1.1a.tar.gz");
    let unpack = |name: &str| {
        let out =
            Command::new("tar").arg("-xzOf").arg(&archive).arg(format!("wondershaper-1.1a/{name}")).output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    };
    // Whoever installs it takes these two lines away, as they say.
    let ready = |t: String| {
        t.replace("echo Please read the documentation in 'README' first\n", "").replacen("\nexit\n", "\n", 1)
    };
    let script = |name: &str, args: &[&str]| Script {
        text: ready(unpack(name)),
        name: format!("/etc/ppp/ip-up.d/{name}"),
        args: args.iter().map(|&a| a.to_owned()).collect(),
        ..Script::default()
    };
    let golden = Golden::open("wshaper_htb", &["ppp0"], &[]);
    let mut host = golden.machine();
    let (status, kept) = exec(&mut host, &script("wshaper.htb", &[]));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    golden.check(&kept, &mut host);
    let (status, kept) = exec(&mut host, &script("wshaper.htb", &["status"]));
    assert_eq!(status, 0);
    starts(&kept.stdout, &["class htb 1:30 parent 1:1 leaf 30: prio 2 rate 176Kbit"]);
    exec(&mut host, &script("wshaper.htb", &["stop"]));
    assert_eq!(show(&mut host, "tc qdisc show dev ppp0"), "qdisc noqueue 0: root refcnt 2 \n");
    let mut host = machine(&["eth0"]);
    let (status, kept) = exec(&mut host, &script("wshaper", &[]));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    starts(
        &show(&mut host, "tc class show dev eth0"),
        &["class cbq 1:1 parent 1: rate 220Kbit (bounded,isolated) prio 5"],
    );
}

/// The edges of a DiffServ domain: what marks by tcindex runs whole; of those that mark with ipchains everything else does.
#[test]
fn iproute2_diffserv_edges() {
    let Some(folder) = iproute2() else { return };
    for (name, chains, dsmark) in [
        ("Edge1", 3, "indices 0x0040 set_tc_index"),
        ("Edge2", 3, "indices 0x0040"),
        ("Edge31-ca-u32", 0, "indices 0x0040"),
        ("Edge31-cb-chains", 2, "indices 0x0040"),
        ("Edge32-ca-u32", 0, "indices 0x0040"),
        ("Edge32-cb-chains", 2, "indices 0x0040"),
        ("Edge32-cb-u32", 0, "indices 0x0040"),
    ] {
        let script = Script {
            text: text(folder.join("diffserv").join(name)),
            name: name.to_owned(),
            ..Script::default()
        };
        let mut host = machine(&["eth0", "eth1", "eth2"]);
        let (status, kept) = exec(&mut host, &script);
        assert_eq!(status, 0, "{name}: {}", kept.stderr);
        let refused = refused(&kept);
        let other: Vec<_> = refused.iter().filter(|r| !r.starts_with("ipchains ")).collect();
        assert_eq!((refused.len(), other.len()), (chains, 0), "{name}: {refused:?}");
        for said in refused {
            assert!(said.contains("ipchains: Incompatible with this kernel"), "{said}");
        }
        starts(
            &show(&mut host, "tc qdisc show dev eth1"),
            &[&format!("qdisc dsmark 1: root refcnt 2 {dsmark}")],
        );
        let policed = ["eth0", "eth2"]
            .map(|d| show(&mut host, &format!("tc filter show dev {d} parent ffff:")))
            .concat();
        let policers = kept.commands.iter().filter(|c| c.words.iter().any(|w| w == "police")).count();
        assert_eq!(policed.matches("police 0x").count(), policers, "{name}: {policed}");
        assert_eq!(policers == 0, name == "Edge1", "{name}");
    }
}

/// Three examples are Perl that prints the commands, to be piped into a shell.
#[test]
fn iproute2_diffserv_printed_by_perl() {
    let Some(folder) = iproute2() else { return };
    for (name, device, refusals, classes) in [
        ("afcbq", "eth0", 4, "class cbq 2:1 parent 2: leaf "),
        ("efcbq", "eth1", 0, "class cbq 2:1 parent 2: leaf "),
        ("ef-prio", "eth1", 0, "class tbf "),
    ] {
        let source = folder.join("diffserv").join(name);
        let said = run(
            &Script { text: text(source.clone()), name: name.to_owned(), ..Script::default() },
            &mut At { host: &mut machine(&[device]), now: Time::ZERO },
            &mut Kept::default(),
        );
        assert!(said.unwrap_err().contains("/usr/bin/perl"), "a Perl script itself is not run");
        let Ok(out) = Command::new("perl").arg(&source).stderr(Stdio::null()).output() else {
            use std::io::Write as _;
            let _ = writeln!(std::io::stdout(), "SKIPPED: {name} is written in Perl, which is not here");
            continue;
        };
        let printed = String::from_utf8(out.stdout).unwrap();
        let mut host = machine(&[device]);
        let (_, kept) = exec(&mut host, &Script { text: printed, ..Script::default() });
        // Of three virtual queues of gred, 0 to 2, it sets a fourth up, which Linux has always refused.
        assert_eq!(refused(&kept).len(), refusals, "{name}: {:?}", refused(&kept));
        starts(
            &show(&mut host, &format!("tc qdisc show dev {device}")),
            &["qdisc dsmark 1: root refcnt 2 indices 0x0040 set_tc_index"],
        );
        starts(&show(&mut host, &format!("tc class show dev {device}")), &[classes]);
    }
}

#[test]
fn iproute2_cbqinit_and_the_limit_on_syns() {
    let Some(folder) = iproute2() else { return };
    let script =
        |name: &str| Script { text: text(folder.join(name)), name: name.to_owned(), ..Script::default() };
    let mut host = machine(&["eth1"]);
    let (status, kept) = exec(&mut host, &script("cbqinit.eth1"));
    assert_eq!((status, kept.stderr.as_str()), (0, ""));
    starts(
        &show(&mut host, "tc class show dev eth1"),
        &["class cbq 1:2 parent 1:1 leaf ", "class cbq 1:7fff parent 1:7ffe rate 1Mbit prio 6"],
    );
    let mut host = machine(&["eth2"]);
    let (_, kept) = exec(&mut host, &script("SYN-DoS.rate.limit"));
    assert_eq!(refused(&kept).len(), 1, "{:?}", refused(&kept));
    starts(
        &show(&mut host, "tc filter show dev eth2 parent ffff:"),
        &["filter protocol ip pref 50 fw chain 0 handle 0x1 classid :1"],
    );
}
