//! What of a script is looked at: everything, or it is said.

use penstock_check::{Answer, Settings, Sourced, examine, examine_with};
use penstock_shell::Script;

fn of(text: &str) -> Answer {
    let script = Script { text: text.to_owned(), name: "x.sh".to_owned(), ..Script::default() };
    examine(&script, &Settings::default())
}

/// The wrong line is found wherever a script would not get to it.
#[track_caller]
fn found(text: &str, line: u32) {
    let answer = of(text);
    let errors: Vec<_> = answer.findings.iter().filter(|f| f.code == "PS001").map(|f| f.line).collect();
    assert_eq!(errors, [line], "{text}\n{answer:#?}");
    assert_eq!(answer.coverage.looked_at, answer.coverage.commands, "{text}\n{:#?}", answer.coverage);
    assert_eq!(answer.exit_status(), 2);
}

/// The script `d/x.sh` with files of the folder `d`, each sourced by the word it is given with.
fn with(text: &str, files: &[(&str, &str, &str)]) -> Answer {
    let file = |&(word, name, text): &(&str, &str, &str)| Sourced {
        within: "d/x.sh".to_owned(),
        word: word.to_owned(),
        name: name.to_owned(),
        text: Ok(text.to_owned()),
    };
    let script = Script { text: text.to_owned(), name: "d/x.sh".to_owned(), ..Script::default() };
    examine_with(&script, &files.iter().map(file).collect::<Vec<_>>(), &Settings::default())
}

/// What nobody sets is unknown, and said; what is nearly a name that is set is a mistake; what is given is known.
#[test]
fn what_the_environment_gives_is_unknown_and_said() {
    let text = "#!/bin/sh\n[ -z \"$dev\" ] && exit 1\ntc qdisc add dev $dev root tbf rate ${bytes_limit}bps burst 32k latency 50ms\n\
                tc qdisc add dev $dev ingress\ntc filter add dev $dev parent ffff: protocol ip prio 1 u32 match ip src $ifconfig_pool_remote_ip/32 police rate 1mbit burst 1 dorp\n";
    let answer = of(text);
    let places: Vec<_> = answer.findings.iter().map(|f| (f.code, f.line)).collect();
    assert_eq!(places, [("PS001", 5)], "{:#?}", answer.findings);
    assert_eq!((answer.coverage.looked_at, answer.coverage.commands), (3, 3));
    let said = answer.coverage.text();
    assert!(
        said.contains(
            "  `$bytes_limit` (line 3), `$dev` (line 3), `$ifconfig_pool_remote_ip` (line 5) come from the environment: give them with \
             --env bytes_limit=… --env dev=… --env ifconfig_pool_remote_ip=…\n"
        ),
        "{said}"
    );
    assert_eq!(answer.coverage.json()["environment"][1]["name"], "dev");
    let given = |names: &[(&str, &str)]| {
        let env = names.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        examine(
            &Script { text: text.to_owned(), name: "x.sh".to_owned(), env, ..Script::default() },
            &Settings::default(),
        )
    };
    let answer = given(&[("dev", "tun0"), ("bytes_limit", "1x"), ("ifconfig_pool_remote_ip", "10.8.0.6")]);
    let places: Vec<_> = answer.findings.iter().map(|f| (f.code, f.line)).collect();
    assert_eq!(places, [("PS001", 3), ("PS250", 4), ("PS001", 5)], "{:#?}", answer.findings);
    assert!(!answer.findings[2].reason.contains("not set"), "{}", answer.findings[2].reason);
    assert!(!answer.coverage.text().contains("environment"), "{}", answer.coverage.text());
    // Options that it may hold: without them the command is carried out, and what stands below it has its parent.
    let answer = of(
        "#!/bin/sh\ntc qdisc replace dev eth0 root handle 1: htb $OPTIONS\ntc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n",
    );
    assert_eq!(answer.findings, []);
}

/// The codes and lines of a text's findings, all of whose commands are looked at.
#[track_caller]
fn whole(text: &str) -> Vec<(&'static str, u32)> {
    let answer = of(text);
    let coverage = &answer.coverage;
    assert_eq!(coverage.looked_at, coverage.commands, "{text}\n{coverage:#?}");
    answer.findings.iter().map(|f| (f.code, f.line)).collect()
}

/// A function under the name of a program: its calls are the commands, whichever of several definitions holds.
#[test]
fn functions_by_the_name_of_a_program_are_counted() {
    let text = "#!/bin/sh\nTC=/sbin/tc\nif [ \"$1\" = compile ]; then\n    tc() { echo \"$TC $@\"; }\nelse\n    tc() { $TC \"$@\"; }\nfi\n\
                tc qdisc replace dev eth0 root tbf rat 1mbit\nif [ \"$2\" = x ]; then\n    exec /bin/sh ./cache\nfi\nexec ./run\ntc qdisc show\n";
    assert_eq!(of(text).coverage.commands, 3);
    assert_eq!(whole(text), [("PS001", 8)]);
}

/// What a program prints is unknown where it turns out to be nothing, unless the script asks; so are elements of an array that is unknown.
#[test]
fn answers_that_turn_out_empty_are_unknown() {
    let text = "#!/bin/sh\nMTU=$(ifconfig eth0 | grep -o 'MTU:.*')\nDEV=`ip addr show | grep 172.18 | cut -d: -f2`\n\
                tc qdisc del dev $DEV root 2>/dev/null\ntc qdisc add dev $DEV root handle 1: htb default 10\n\
                tc class add dev $DEV parent 1: classid 1:10 htb rate 1mbit quantum $MTU ciel 2mbit\n";
    assert_eq!(whole(text), [("PS001", 6)]);
    let asked = "#!/bin/sh\nOLD=$(tc qdisc show dev eth0 | grep htb)\nif [ -z \"$OLD\" ]; then\n    tc qdisc add dev eth0 root handle 1: htb default 9\nfi\n";
    assert_eq!(whole(asked), [("PS250", 4), ("PS119", 4)]);
    let array = "#!/bin/bash\n. ./users.sh\nfor ((i = 2; i <= ${#speed[@]} + 1; i++)); do\n    tc qdisc replace dev eth0 root tbf rate ${speed[$i]}kbit burst 5k latency 20ms\ndone\n";
    assert_eq!(whole(array), []);
    assert!(of(array).coverage.environment.is_empty());
}

/// A divisor, a sum or an element that is nothing because a course was decided for the script is no mistake of its.
#[test]
fn what_is_worked_out_from_the_unknown_is_no_mistake() {
    let text = "#!/bin/bash\nset_rate() {\n    local size=$1 rates=() n\n    ((changed)) || return\n    if ((changed == 2)); then\n        tc -batch - <<< \"$batch\"\n\
                \x20   elif ((changed == 1)); then\n        tc qdisc change dev eth0 root cake bandwidth \"${rates[n]}Kbit\"\n    fi\n}\n\
                mtu_of() {\n    local -n into=$2\n    into=$(cat /sys/class/net/$1/mtu)\n    [[ $(tc qdisc show dev $1) =~ atm ]]\n}\n";
    assert_eq!(whole(text), []);
    let red = "#!/bin/sh\nsource ./conf\nMIN=$((RATE / SIZE))\ntc qdisc replace dev eth0 root red limit 150000 min $((GAME * 2)) max $((GAME * 6)) avpkt 500 bandwidth ${RATE}kbit burst 2\n";
    assert_eq!(whole(red), []);
}

/// Commands that other programs and functions carry out, and those that show only when they are carried out.
#[test]
fn commands_are_counted_whoever_carries_them_out() {
    let counted = |line: &str| {
        let answer = of(&format!(
            "#!/bin/bash\nrun() {{ echo \"+ $*\"; \"$@\"; }}\nDO=\nSAVED='tc qdisc show'\n{line}\n"
        ));
        assert_eq!(answer.findings, [], "{line}");
        (answer.coverage.looked_at, answer.coverage.commands)
    };
    for line in [
        "run tc qdisc show dev eth0",
        "$DO tc qdisc show dev eth0",
        "ssh root@r1 tc qdisc show dev eth0",
        "ssh root@r1 'tc qdisc show dev eth0'",
        "docker exec c1 tc qdisc replace dev eth0 root fq_codel",
        "nsenter -t 7 -n tc qdisc show",
        "echo eth0 | xargs -I{} tc qdisc show dev {}",
        "eval \"$SAVED\"",
        "sh -c \"$SAVED\"",
    ] {
        assert_eq!(counted(line), (1, 1), "{line}");
    }
    // What only speaks of a program is none.
    for line in ["need tc ip", "run echo tc qdisc", "command -v tc", "docker pull tc"] {
        assert_eq!(counted(line), (0, 0), "{line}");
    }
}

/// What a call behind the end of the script would have given, though its function was called before.
#[test]
fn calls_behind_the_end_are_made() {
    let text = "#!/bin/sh\nclass() {\n    tc class add dev eth0 parent $1 classid $2 htb rate $3 ceil $4 || exit 1\n}\ntc qdisc del dev eth0 root\n\
                tc qdisc add dev eth0 root handle 1: htb default 10\nclass 1: 1:10 5mbit 5mbit\nclass 1: 1:11 5Mbits 9mbit\nclass 1: 1:12 9mbit 5mbit\n";
    assert_eq!(whole(text), [("PS001", 8), ("PS103", 9)]);
}

#[test]
fn what_is_sourced_is_read() {
    let lib = "RATE=4mbit\nmk() {\n    tc qdisc add dev $1 root handle 1: htb default 10\n    tc class add dev $1 parent 1: classid 1:10 htb rate $RATE burst 10\n}\n\
               spare() {\n    tc qdisc add dev $1 root tbf rat 1mbit\n}\n";
    let answer = with("#!/bin/sh\n. ./lib.sh\nmk eth0\n", &[("./lib.sh", "d/lib.sh", lib)]);
    let places: Vec<_> =
        answer.findings.iter().map(|f| (f.code, f.file.as_str(), f.line, f.column)).collect();
    // The variable has its value in that file, and the function nobody calls is read.
    assert_eq!(
        places,
        [("PS250", "d/lib.sh", 3, 14), ("PS121", "d/lib.sh", 4, 69), ("PS001", "d/lib.sh", 7, 34)],
        "{:#?}",
        answer.findings
    );
    let reason = &answer.findings[1].reason;
    assert!(
        reason.contains("Called from line 3 of d/x.sh.") && reason.ends_with("sourced by d/x.sh, line 2."),
        "{reason}"
    );
    let coverage = answer.coverage;
    assert_eq!((coverage.looked_at, coverage.commands, coverage.is_whole()), (3, 3, true));
    assert!(coverage.text().contains("sourced and read as well: d/lib.sh (3 of 3)\n"), "{}", coverage.text());
}

#[test]
fn a_comment_in_a_sourced_file_holds_there() {
    let lib = "# penstock: allow PS146\ntc qdisc add dev $DEV root sfq\n";
    let text =
        "#!/bin/sh\nDEV=eth0\ntc qdisc del dev $DEV root 2>/dev/null\n. \"$(dirname \"$0\")/lib.sh\"\n";
    let answer = with(text, &[("$(dirname $0)/lib.sh", "d/lib.sh", lib)]);
    assert_eq!((answer.findings, answer.coverage.looked_at), (Vec::new(), 2));
}

#[test]
fn a_fault_in_a_sourced_file_stands_there() {
    let answer =
        with("#!/bin/sh\n\n\n. ./lib.sh\ntc qdisc show\n", &[("./lib.sh", "d/lib.sh", "A=1\nif then\n")]);
    let places: Vec<_> = answer.findings.iter().map(|f| (f.code, f.file.as_str(), f.line)).collect();
    assert_eq!(places, [("PS005", "d/lib.sh", 2)], "{:#?}", answer.findings);
}

#[test]
fn what_is_sourced_and_not_read_counts() {
    let answer = of("#!/bin/sh\n. /lib/functions.sh\nsetup\n");
    let said = answer.coverage.text();
    assert_eq!(
        said,
        "no network command in it\n  line 2: `. /lib/functions.sh` is not read: the file is not given\n"
    );
    assert_eq!((answer.exit_status(), answer.coverage.is_whole()), (3, false));
    // By hand, as the page and Python give files.
    let script = Script {
        text: "#!/bin/sh\n. /lib/functions.sh\n. ./b.sh\n".to_owned(),
        name: "x.sh".to_owned(),
        files: vec![
            ("/lib/functions.sh".to_owned(), "ip link show\n".to_owned()),
            ("/root/b.sh".to_owned(), WRONG.to_owned()),
        ],
        ..Script::default()
    };
    let answer = examine(&script, &Settings::default());
    let places: Vec<_> = answer.findings.iter().map(|f| (f.code, f.file.as_str(), f.line)).collect();
    assert_eq!((places, answer.coverage.looked_at), (vec![("PS001", "b.sh", 1)], 2));
}

/// A variable that is a function of another file is the program by its name; where the function is there, its calls are what it carries out.
#[test]
fn wrappers_of_other_files_are_programs() {
    let text = "#!/bin/sh\n. ./d.sh\n$TC qdisc add dev eth0 root tbf rat 10mbit\n";
    let defaults = "[ -z \"$TC\" ] && TC=tc_wrapper\n";
    let answer = with(text, &[("./d.sh", "d/d.sh", defaults)]);
    let places: Vec<_> = answer.findings.iter().map(|f| (f.code, f.file.as_str(), f.line)).collect();
    assert_eq!((places, answer.coverage.looked_at), (vec![("PS001", "d/x.sh", 3)], 1));
    let wrapper = format!("{defaults}tc_wrapper() {{\n    run tc \"$@\"\n}}\nrun() {{\n    \"$@\"\n}}\n");
    let answer = with(text, &[("./d.sh", "d/d.sh", &wrapper)]);
    let places: Vec<_> = answer.findings.iter().map(|f| (f.code, f.file.as_str(), f.line)).collect();
    assert_eq!(
        (places, answer.coverage.looked_at),
        (vec![("PS001", "d/x.sh", 3)], 1),
        "{:#?}",
        answer.coverage
    );
}

/// What is made to see whether a qdisc works, and taken away, is no set-up.
#[test]
fn a_trial_is_no_setup() {
    let text = "#!/bin/sh\nip link add name T type ifb\ntc qdisc replace dev T root cake\nip link del T\ntc qdisc show\n";
    assert_eq!(of(text).findings, []);
}

const WRONG: &str = "tc qdisc add dev eth0 root tbf rat 10mbit\n";

#[test]
fn programs_that_are_not_simulated_end_nothing() {
    for program in [
        "systemctl stop foo",
        "uci get network.wan.ifname",
        "jq -r .rate /etc/x.json",
        "ipvsadm -L",
        "conntrack -F",
        "wg show",
        "ss -tin dst 10.0.0.2",
        "ss -K dst 10.0.0.2",
        "ip netns exec blue ss -tin",
        "[ $(ss -Htn | wc -l) -gt 0 ] || exit 1",
        "curl -s http://192.0.2.1/",
        "docker ps",
        "python3 -c 1",
        "nmcli dev",
        "bridge vlan show",
        "getent hosts foo",
        "/usr/local/bin/notify a",
    ] {
        found(&format!("#!/bin/bash\nset -e\n{program}\n{WRONG}"), 4);
    }
}

#[test]
fn guards_are_passed() {
    for guard in [
        "which jq || exit 1",
        "command -v jq >/dev/null || { echo no jq; exit 1; }",
        "type jq || exit",
        "hash jq || exit",
        "[ -f /etc/shaper.conf ] || exit 1",
        "[ $# -lt 2 ] && exit",
        "if [ $# -lt 2 ]; then echo usage; exit 2; fi",
        "grep -q eth0 /proc/net/dev || exit",
        "[ \"$ACTION\" = ifup ] || exit 0",
        "IP=$(ip -4 addr show dev eth0 | awk '/inet/{print $2}'); [ -n \"$IP\" ] || exit",
        "IP=`cat /etc/address`; [ -z \"$IP\" ] && exit 1",
        "die() { echo \"$1\"; exit 1; }; [ -e /etc/x ] || die no",
        "test -x /usr/bin/jq || exit 5",
        ". /etc/shaper.conf; [ \"$ENABLED\" = yes ] || exit 0",
        "case \"$2\" in up) ;; *) exit 0;; esac",
        "while [ ! -e /etc/ready ]; do exit 3; done",
        "set -u; echo $NOTHING",
        "D=${1:?usage: x DEV}",
        "trap 'rm -f x' EXIT; [ -d /etc/shaper ] || exit 1",
        "[ -e /var/run/lock ] || exit 1",
    ] {
        found(&format!("#!/bin/bash\n{guard}\n{WRONG}"), 3);
    }
}

#[test]
fn every_side_of_a_condition_is_read() {
    found(&format!("#!/bin/sh\nif [ -f /etc/x ]; then\n{WRONG}fi\n"), 3);
    found(&format!("#!/bin/sh\nif true; then\n:\nelif [ a = b ]; then :; else\n{WRONG}fi\n"), 5);
    found(&format!("#!/bin/sh\n[ \"$X\" = y ] &&\n{WRONG}"), 3);
    found(&format!("#!/bin/sh\ntrue || {{\n{WRONG}}}\n"), 3);
    found(&format!("#!/bin/sh\ncase $MODE in\na) tc qdisc show;;\nb|c)\n{WRONG};; *) ;; esac\n"), 5);
    found(&format!("#!/bin/sh\nfor i in $(cat /run/none); do\n{WRONG}done\n"), 3);
    found(&format!("#!/bin/sh\nwhile read -r a b; do\n{WRONG}done < /etc/clients\n"), 3);
    found(&format!("#!/bin/sh\ncat /etc/clients | while read -r a b; do\n{WRONG}done\n"), 3);
    found(
        &format!(
            "#!/bin/bash\nif [[ -n $A && $B ]]; then if [ $C ]; then while [ $D ]; do\n{WRONG}done; fi; fi\n"
        ),
        3,
    );
}

#[test]
fn functions_that_nobody_calls_are_read() {
    found(&format!("#!/bin/sh\nshape() {{\n{WRONG}}}\n"), 3);
    found(
        &format!(
            "#!/bin/bash\nfunction inner {{\n{WRONG}}}\nouter() {{ [ -n \"$1\" ] || return 1; inner; }}\n"
        ),
        3,
    );
    found(&format!("#!/bin/sh\nshape() {{\n[ -e /etc/x ] || return\n{WRONG}}}\nshape\n"), 4);
    // Its arguments are unknown: what is wrong beside them is told, they are not.
    let text = "f() {\n tc class add dev $1 parent $2 classid $3 htb rate $4 ceil $5\n tc qdisc add dev $1 root $2 limit 5\n}\n";
    let answer = of(text);
    assert_eq!((answer.findings, answer.coverage.looked_at), (Vec::new(), 2));
}

#[test]
fn a_function_is_read_past_the_arm_that_leaves_it() {
    // sqm's way: one kind of queue has a function of its own, and the caller returns behind it.
    found(
        &format!(
            "#!/bin/sh\none() {{\ntc qdisc show dev eth0\n}}\nall() {{\ncase $QDISC in\ncake*) one; return;;\nesac\n{WRONG}}}\n"
        ),
        9,
    );
    // More arguments than nine, and a divisor that nobody gives.
    found(&format!("#!/bin/bash\nf() {{\nlocal n=${{11}}\nlocal r=$((80 / n))\n{WRONG}}}\n"), 5);
    let text =
        format!("#!/bin/bash\na() {{\nlocal r=$((80 / (LIM - LIM)))\ntc qdisc show\n}}\nb() {{\n{WRONG}}}\n");
    let answer = of(&text);
    let codes: Vec<_> = answer.findings.iter().map(|f| (f.code, f.line)).collect();
    assert_eq!((codes, answer.coverage.looked_at), (vec![("PS001", 7)], 1), "{:#?}", answer.findings);
}

#[test]
fn what_a_function_works_out_of_nothing_is_no_error() {
    let text = "#!/bin/bash\nf() {\nlocal lim=$((KB * 3 / 8))\ntc qdisc add dev eth0 root tbf rate 5mbit burst 5k limit $lim\n}\n\
                g() {\nlocal proto\ncase $1 in\na) proto=ip;;\nesac\ntc filter add dev eth0 parent 1: protocol \"$proto\" prio 1 matchall\n}\n";
    let answer = of(text);
    assert!(answer.findings.iter().all(|f| f.code != "PS001"), "{:#?}", answer.findings);
}

#[test]
fn a_name_that_ends_in_the_unknown_is_no_kind() {
    let text = "#!/bin/sh\nNAME=$(uci get a)\nDEV=\"$NAME ifb4$NAME\"\ntc qdisc del dev $DEV root\n";
    let answer = of(text);
    assert!(answer.findings.iter().all(|f| f.code > "PS006"), "{:#?}", answer.findings);
}

#[test]
fn a_common_script_is_run_once() {
    let answer = of(
        "#!/bin/sh\nDEV=eth0\ntc qdisc del dev $DEV root 2>/dev/null\ntc qdisc add dev $DEV root sfq perturb 10\n",
    );
    assert_eq!((answer.coverage.runs, answer.coverage.looked_at, answer.exit_status()), (1, 2, 0));
}

#[test]
fn what_was_not_read_is_said() {
    // Inside arithmetic that never holds, with more arms than runs.
    let arms: String = (0..30).map(|n| format!("x{n}) tc qdisc show dev eth{n};;\n")).collect();
    let answer = of(&format!("#!/bin/sh\ncase $1 in\n{arms}esac\n"));
    assert!(!answer.coverage.is_whole());
    assert_eq!(answer.exit_status(), 3);
    let said = answer.coverage.text();
    assert!(said.contains("of 30 network commands looked at"), "{said}");
    assert!(said.contains("not reached: `$1` is not"), "{said}");
    assert!(said.contains("times, which is the most"), "{said}");
    assert_eq!(
        answer.coverage.missed.iter().map(|m| m.commands).sum::<usize>() + answer.coverage.looked_at,
        30
    );
}

#[test]
fn programs_taken_to_succeed_are_named() {
    let answer = of("#!/bin/sh\nsystemctl stop x\ntc qdisc show\n");
    assert!(answer.coverage.text().contains("not simulated, taken to succeed: systemctl (line 2)"));
    // A program whose name is another's output is not called by what stands for it.
    let named = "#!/bin/sh\nX=$(get_it)\n$X qdisc show\ntc qdisc add dev eth0 root sfq\n";
    let answer = of(named);
    let text = answer.coverage.text();
    assert!(text.contains("a program whose name is unknown (line 3)"), "{text}");
}

/// Letters of other alphabets stand before words of a variable, an option and a crontab.
#[test]
fn letters_of_any_alphabet_are_read() {
    for line in ["echo \"größe=5 é=$2\"; shift", "é=$OPTARG", "µ*/5 é * * * tc é=$X", "\tß:=é=$(x)\n<<é"]
    {
        for name in ["x.sh", "makefile", "x.rb", "interfaces", "x.network", "x.yml", "cron"] {
            let text = format!("{line}\ntc qdisc add dev eth0 root sfq\n{line}\n");
            let script = Script { name: name.to_owned(), text, ..Script::default() };
            let _ = penstock_check::check(&script, &Settings::default());
        }
    }
}

/// What is there instead of a class that is not is told whole: none, some, or how many more.
#[test]
fn classes_that_are_there_are_told() {
    let told = |classes: u32| {
        let each = |n| format!("tc class add dev eth0 parent 1: classid 1:{n} htb rate 1mbit\n");
        let classes: String = (1..=classes).map(each).collect();
        let filter = "tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.1 flowid 1:99\n";
        let answer = of(&format!("tc qdisc add dev eth0 root handle 1: htb\n{classes}{filter}"));
        let found = answer.findings.into_iter().find(|f| f.code == "PS170");
        found.map(|f| f.reason).unwrap_or_default()
    };
    assert_eq!(told(0), "1: has no class.");
    assert_eq!(told(2), "1: has the classes 1:1, 1:2.");
    assert!(told(9).ends_with("1:7, 1:8 and 1 more."), "{}", told(9));
}

/// What a run would refuse of pppd's options is said; of options that no file gives, that.
#[test]
fn options_of_pppd_that_are_not_simulated_are_named() {
    let answer =
        of("#!/bin/sh\npppd plugin rp-pppoe.so eth0 user a demand\npppoe-server -I eth1 -Z 3\npon dsl\n");
    let said = answer.coverage.text();
    for words in [
        "pppd: option \"demand\" (line 2)",
        "pppoe-server: -Z 3 (line 3)",
        "pon: a file of options that is not given (line 4)",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!((answer.findings, answer.coverage.commands), (Vec::new(), 0));
}

#[test]
fn justfiles_and_restructured_text_are_read_as_what_they_are() {
    let named = |name: &str, text: &str| {
        let script = Script { text: text.to_owned(), name: name.to_owned(), ..Script::default() };
        let answer = examine(&script, &Settings::default());
        let found: Vec<_> = answer.findings.iter().map(|f| (f.code, f.line)).collect();
        (found, answer.coverage.looked_at, answer.coverage.commands)
    };
    let just = format!(
        "dev := \"eth0\"\n\n# shapes\nup: build\n    @tc qdisc replace dev {{{{dev}}}} root cake bandwidth 5mbit\n    {WRONG}\ndown:\n    -tc qdisc del dev {{{{ dev }}}} root\n"
    );
    assert_eq!(named("justfile", &just), (vec![("PS001", 6)], 3, 3));
    let rst = format!(
        "Shaping\n=======\n\n.. code-block:: console\n\n   $ tc qdisc show\n   qdisc noqueue 0: dev lo root\n   $ {WRONG}\nText::\n\n   tc qdisc show\n"
    );
    assert_eq!(named("docs/shaping.rst", &rst), (vec![("PS001", 8)], 3, 3));
}

#[test]
fn a_loop_that_waits_for_the_unknown_ends() {
    // What a program prints is unknown and never says what is waited for.
    found("until ss -ltn | grep -q :5201; do sleep 1; done\ntc qdisc add dev eth0 rot fq\n", 2);
    found(
        "set -eu\nwhile ! curl -s http://10.0.0.1 | grep -q up\ndo\n  sleep 0.1\ndone\ntc qdisc add dev eth0 rot fq\n",
        6,
    );
    found("while true; do\n  tc qdisc add dev eth0 rot fq\n  sleep 5\ndone\n", 2);
}
