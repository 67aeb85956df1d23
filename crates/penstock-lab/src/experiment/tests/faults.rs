//! What is said about wrong files, and where.

use super::{TWO, read};

/// Each case: a text ([`TWO`] follows where it ends with `+`, goes before where it begins with `-`) and what is said.
#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases: &[(&str, &str)] = &[
        // Not TOML, not there, not a host.
        ("title = \n", "1:9: string values must be quoted, expected literal string"),
        ("", "1:1: there is no host | add e.g. [host.u1] with eth0 = \"10.0.0.1/24\""),
        // Heads.
        ("durration = \"5s\"\n+", "1:1: an experiment has no key \"durration\" | did you mean \"duration\"?"),
        ("time = \"5s\"\n+", "1:1: an experiment has no key \"time\" | did you mean \"duration\"?"),
        (
            "colour = 1\n+",
            "1:1: an experiment has no key \"colour\" | there are base, title, about, duration, warmup, seed, sample, offloads, \
             kernel, setup_may_fail, host, switch, link, app, flow, test, meter, capture, expect",
        ),
        (
            "duration = 12\n+",
            "1:12: duration: \"12\" is not a duration | it has no unit: write duration = \"12s\" or \"12ms\"",
        ),
        (
            "duration = \"12 s\"\n+",
            "1:12: duration: \"12 s\" is not a duration | write a number and s, ms, us or ns: duration = \"50ms\"",
        ),
        (
            "duration = \"-1s\"\n+",
            "1:12: duration: \"-1s\" is not a duration | write a number and s, ms, us or ns: duration = \"50ms\"",
        ),
        ("duration = \"0s\"\n+", "1:12: duration is out of range | write more than 0s, at most 86400s"),
        ("duration = true\n+", "1:12: duration is true or false, not text | write it in quotes"),
        (
            "seed = \"seven\"\n+",
            "1:8: seed is a string, not a whole number | write a whole number from 0 to 9223372036854775806",
        ),
        ("seed = -1\n+", "1:8: seed is out of range | write a whole number from 0 to 9223372036854775806"),
        ("sample = \"1us\"\n+", "1:10: sample is out of range | write 100us or more"),
        ("title = 5\n+", "1:9: title is a number, not text | write title = \"5\""),
        (
            "kernel = \"2.0\"\n+",
            "1:10: unknown kernel profile \"2.0\" | there are \"2.2\", \"2.4\", \"2.6.35\", \"6.12\" and \"7.2\"",
        ),
        (
            "setup_may_fail = \"yes\"\n+",
            "1:18: setup_may_fail is a string, not true or false | write setup_may_fail = true",
        ),
        (
            "base = \"none.toml\"\n+",
            "1:8: base: cannot read none.toml: there is no such file | the path is read from the folder of lab/x.toml",
        ),
        ("base = \"loop.toml\"\n+", "1:8: base: files extend one another too deeply | does one name itself?"),
        (
            "base = \"broken.toml\"\n+",
            "1:12: duration: \"5\" is not a duration | it has no unit: write duration = \"5s\" or \"5ms\"",
        ),
        // Hosts.
        ("host = 5\n", "1:8: host is not a table | write [host.u1] and its keys below"),
        ("[host]\na = 5\n", "2:5: [host.a] is a number, not a table | write { … }"),
        (
            "[host.\"a:b\"]\n",
            "1:7: a host cannot be called \"a:b\" | use letters, digits, \"-\", \"_\" and \".\", at most 63",
        ),
        (
            "[host.a]\ngateway = \"10.0.0.1\"\n",
            "2:1: [host.a] has no key \"gateway\" | did you mean \"via\"?",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1\"\n",
            "2:8: eth0: \"10.0.0.1\" is not an address with a prefix length | add the prefix length: eth0 = \"10.0.0.1/24\"",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.300/24\"\n",
            "2:8: eth0: \"10.0.0.300/24\" is not an address with a prefix length | write eth0 = \"10.0.0.1/24\"",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/33\"\n",
            "2:8: eth0: \"10.0.0.1/33\" is not an address with a prefix length | write eth0 = \"10.0.0.1/24\"",
        ),
        (
            "[host.a]\neth0 = { adress = \"10.0.0.1/24\" }\n",
            "2:10: eth0 has no key \"adress\" | did you mean \"address\"?",
        ),
        (
            "[host.a]\neth0 = { mtu = 5 }\n",
            "2:16: mtu is out of range | write a whole number from 68 to 65535",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/24\"\nvia = \"10.0.0.2/24\"\n",
            "3:7: via: \"10.0.0.2/24\" is not an IPv4 address | no prefix length here: via = \"10.0.0.2\"",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/24\"\nvia = \"10.0.1.2\"\n",
            "3:7: via: a has no device in 10.0.1.2's network | its networks are those of eth0 10.0.0.1/24",
        ),
        (
            "[host.a]\nvia = \"10.0.1.2\"\n",
            "2:7: via: a has no device in 10.0.1.2's network | give it a device with an address in the gateway's network",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.1/24\"\n",
            "4:1: b:eth0 has the address 10.0.0.1, and so has a:eth0 | give each its own",
        ),
        (
            "[host.a]\nsetup = [\"@none.sh\"]\n",
            "2:10: setup: cannot read none.sh: there is no such file | the path is read from the folder of lab/x.toml",
        ),
        ("[host.a]\nsetup = 5\n", "2:9: setup is a number, not text | write setup = \"5\""),
        (
            "[host.a]\ncisco = \"@r1.cfg\"\neth0 = \"10.0.0.1/24\"\n",
            "3:1: [host.a] has \"cisco\" and \"eth0\" | a Cisco router's interfaces stand in its configuration",
        ),
        (
            "[host.a]\ncisco = \"@r1.cfg\"\nsetup = \"x\"\n",
            "3:9: [host.a] has \"cisco\" and \"setup\" | everything is in the configuration",
        ),
        (
            "[host.a]\nos = \"windowsxp\"\n",
            "2:6: os: \"windowsxp\" is unknown | did you mean \"windows-xp\"?",
        ),
        ("[host.a]\nos = { a = 1 }\n", "2:6: os is a table, not text | write it in quotes"),
        (
            "[host.a]\ncost = \"quick\"\n",
            "2:8: cost: \"quick\" is not a duration | write a number and s, ms, us or ns: cost = \"50ms\"",
        ),
        (
            "[host.a]\ncost = { spread = \"1us\" }\n",
            "2:8: cost has neither \"packet\" nor \"byte\" | add e.g. packet = \"20us\"",
        ),
        (
            "[host.a]\nprocessor = \"esxi\"\n",
            "2:13: [host.a] shares a processor and spends nothing on it | add e.g. cost = \"20us\"",
        ),
        (
            "[host.a]\ncost = { packet = \"1us\", pause = { at = \"1s\" } }\n",
            "2:34: pause has no \"lasts\" | write pause = { at = \"5s\", lasts = \"50ms\" }",
        ),
        (
            "[host.a]\ncost = { pause = [{ at = \"1s\", lasts = \"2s\" }, { at = \"2s\", lasts = \"1s\" }] }\n",
            "2:18: a pause begins before the one before it ends | list them in the order of time, each after the end of the one before",
        ),
        (
            "[host.a]\ncost = { packet = { from = \"2us\", to = \"1us\" } }\n",
            "2:40: to lies before from | write the smaller one first",
        ),
        ("[host.a]\ncost = { packet = [] }\n", "2:19: packet is an empty list | write at least one time"),
        (
            "[host.a]\ncost = { byte = \"1s\" }\n",
            "2:17: byte: \"1s\" is not a time for a byte | write byte = \"0.8ns\"",
        ),
        (
            "[host.a]\nfiles = { \"a b\" = 5 }\n",
            "2:11: a file cannot be called \"a b\" | leave out blanks and colons",
        ),
        (
            "[host.a]\nfiles = { a = \"5 apples\" }\n",
            "2:15: files: \"5 apples\" is not a size | write bytes, or a number and k, m, g: files = \"15k\"",
        ),
        // Links.
        (
            "link = 5\n[host.a]\n",
            "1:8: link is not a list of tables | write [[link]] with two brackets and below it ends = [\"a:eth0\", \"b:eth0\"]",
        ),
        ("[[link]]\n+", "1:1: [[link]] has no \"ends\" | add e.g. ends = [\"a:eth0\", \"b:eth0\"]"),
        (
            "-[[link]]\nends = [\"a:eth0\"]\n",
            "8:8: a link has two ends or more | write ends = [\"a:eth0\", \"b:eth0\"]",
        ),
        (
            "[[link]]\nends = [\"a\", \"b:eth1\"]\n[host.a]\n[host.b]\neth1 = \"10.0.0.2/24\"\n",
            "2:9: \"a\" is not an end of a link | write \"a:eth0\"",
        ),
        (
            "[[link]]\nends = [\"aa:eth0\", \"b:eth1\"]\n[host.ab]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth1 = \"10.0.0.2/24\"\n",
            "2:9: there is no host \"aa\" | did you mean \"ab\"?",
        ),
        (
            "[[link]]\nends = [\"a:eth1\", \"b:eth1\"]\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth1 = \"10.0.0.2/24\"\n",
            "2:9: a has no device \"eth1\" | did you mean \"a:eth0\"?",
        ),
        (
            "-rate = \"10mbits\"\n",
            "7:8: rate: \"10mbits\" is not a rate | write a number and bit, kbit, mbit, gbit (or kbps … for bytes): rate = \"10mbit\"",
        ),
        (
            "-rate = 100\n",
            "7:8: rate: \"100\" is not a rate | it has no unit: write rate = \"100mbit\" or \"100kbit\"",
        ),
        (
            "-rate = \"0mbit\"\n",
            "7:8: rate: \"0mbit\" is not a rate | the minimum is 8bit, one byte a second; the maximum fits 64 bits",
        ),
        ("-latency = \"5ms\"\n", "7:1: [[link]] has no key \"latency\" | did you mean \"delay\"?"),
        ("-loss = \"200%\"\n", "7:8: loss: \"200%\" is not a probability | write 0% to 100%: loss = \"1%\""),
        (
            "-loss = \"often\"\n",
            "7:8: loss: \"often\" is not a probability | write 0% to 100%: loss = \"1%\"",
        ),
        (
            "-framing = \"wlan\"\n",
            "7:11: framing: \"wlan\" is unknown | write \"ethernet\", \"none\", \"ip\", \"pos\", \"fddi\", \"atm\", \"ppp\", \"frame-relay\" or \"token-ring\"",
        ),
        (
            "-[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n",
            "8:9: a:eth0 is an end of a link already | put all ends of a shared segment into one [[link]]",
        ),
        // Apps.
        ("-[[app]]\non = \"a\"\n", "7:1: [[app]] has no \"run\" | add e.g. run = \"ping 10.0.0.2\""),
        (
            "-[[app]]\non = \"c\"\nrun = \"ping 10.0.0.2\"\n",
            "8:6: there is no host \"c\" | did you mean \"a\"?",
        ),
        (
            "-[[app]]\non = \"a\"\ncommand = \"ping 10.0.0.2\"\nrun = \"x\"\n",
            "9:1: [[app]] has no key \"command\" | did you mean \"run\"?",
        ),
        ("-[[app]]\non = \"a\"\nrun = \"  \"\n", "9:7: run is empty | write run = \"ping 10.0.0.2\""),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nat = \"10s\"\n",
            "8:6: this app starts at 10s, but the run ends then or before | duration is 10s",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nat = []\n",
            "10:6: at is an empty list | write at = \"1s\" or at = [\"1s\", \"20s\"]",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nafter = \"a y\"\n",
            "10:9: after: there is no app \"a y\" | did you mean \"a x\"?",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nafter = \"a x\"\n",
            "10:9: this app waits for itself | name another one",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nafter = \"a y\"\n[[app]]\non = \"a\"\nrun = \"y\"\nafter = \"a x\"\n",
            "8:6: these apps wait for each other | let one of them start without \"after\"",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nname = \"u\"\n[[app]]\non = \"a\"\nrun = \"x\"\nname = \"u\"\n",
            "12:6: there is an app \"u\" already | give it another name",
        ),
        (
            "-[app]\non = \"a\"\n",
            "7:1: app is not a list of tables | write [[app]] with two brackets and below it on = \"u1\", run = \"ping 10.0.0.2\"",
        ),
        // Flows.
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\n",
            "7:1: [[flow]] has no \"load\" | add e.g. load = \"greedy\"",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"gready\"\n",
            "10:8: load: \"gready\" is unknown | did you mean \"greedy\"?",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"a\"\nload = \"greedy\"\n",
            "7:1: a flow goes from one host to another | name two hosts",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nudp = true\n",
            "10:8: datagrams need a rate or a gap | write load = \"1mbit\" or { size = 160, gap = \"20ms\" }",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = { size = 160 }\n",
            "10:8: load has none of the known forms",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\ntcp = { cc = \"cubik\" }\n",
            "11:14: cc: no congestion control is called \"cubik\" | did you mean \"cubic\"?",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\ncount = 0\n",
            "11:9: count is out of range | write a whole number from 1 to 50000",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nat = { from = \"2s\", to = \"1s\" }\n",
            "11:26: to lies before from | write the smaller one first",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nat = \"2s\"\nuntil = \"1s\"\n",
            "12:9: until does not lie after at | write a later time",
        ),
        // Expectations.
        (
            "-[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"<1ms\"\n",
            "8:8: what: \"a ping rtt\" begins with no app, flow, group or device | begin with a device: \"u4 eth0 drops\"",
        ),
        (
            "-[[expect]]\nwhat = \"a eth0 dropps\"\nvalue = \"0\"\n",
            "8:8: what: there is no figure \"dropps\" | did you mean \"drops\"?",
        ),
        (
            "-[[expect]]\nwhat = \"a eth0 1:10 backlog\"\nvalue = \"0\"\n",
            "8:8: what: there is no figure \"backlog\" | there are bytes, packets, drops, lended, borrowed",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping\"\nvalue = \"0\"\n",
            "11:8: what: \"a ping\" names no figure",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping rtt p98\"\nvalue = \"0\"\n",
            "11:8: what: rtt has no \"p98\" | there are min, mean, p50, p95, p99, max",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"5..6\"\n",
            "12:9: value: \"5..6\" is not a range of numbers | write \"1ms..2ms\", \"<1ms\", \">1ms\" or \"1ms\"",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"6ms..5ms\"\n",
            "12:9: value: \"6ms..5ms\" is not a range of numbers | write the smaller one first",
        ),
        (
            "-[[expect]]\nwhat = \"a eth0 drops\"\n",
            "7:1: [[expect]] has no \"value\" | add e.g. value = \"<10ms\"",
        ),
    ];
    let mut wrong = String::new();
    for (text, want) in cases {
        let text = match (text.strip_prefix('-'), text.strip_suffix('+')) {
            (Some(rest), _) => format!("{}{rest}", TWO.trim_start()),
            (_, Some(head)) => format!("{head}{TWO}"),
            _ => (*text).to_owned(),
        };
        let faults = read(&text).expect_err(&text);
        let d = &faults[0];
        let got = format!("{}:{}: {} | {}", d.line, d.column, d.message, d.help);
        if !got.starts_with(want) {
            wrong.push_str(&format!("{text}\nwant {want}\ngot  {got}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
