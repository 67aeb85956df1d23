//! The same script gives the same bytes: in another thread, another process, at another time, with another environment. The
//! machine's seed and its clock are arguments, and change what they should.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Script, run};
use std::process::Command;

/// Every source of chance and time that a script can reach, a line each.
const EVERY: &str = include_str!("chance.sh");

fn shown(text: &str, seed: u64, clock: i64) -> String {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    host.add_device("eth0");
    let mut kept = Kept::default();
    let script = Script { text: text.to_owned(), name: "x.sh".to_owned(), seed, clock, ..Script::default() };
    let done = run(&script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept);
    format!("{}--- stderr\n{}--- {done:?}\n", kept.stdout, kept.stderr)
}

/// Set where this test runs itself as another process.
const CHILD: &str = "PENSTOCK_TEST_SAME_BYTES";

#[test]
fn in_every_process_and_thread() {
    let first = shown(EVERY, 0, 0);
    if std::env::var_os(CHILD).is_some() {
        println!("<<<{first}>>>");
        return;
    }
    assert!(first.contains("--- Ok("), "{first}");
    let of_thread = |n: usize| {
        let run = move || shown(EVERY, 0, 0);
        (n, std::thread::spawn(run))
    };
    for (n, thread) in (0..4).map(of_thread).collect::<Vec<_>>() {
        same(&first, &thread.join().unwrap(), &format!("thread {n}"));
    }
    for n in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "same_bytes::in_every_process_and_thread", "--nocapture", "--test-threads=1"]);
        child
            .env(CHILD, "1")
            .env("TZ", ["UTC", "Asia/Tokyo", "America/Lima"][n % 3])
            .env("RANDOM", n.to_string());
        child.env("LC_ALL", ["C", "de_DE.UTF-8"][n % 2]).current_dir(["/", "/tmp"][n % 2]);
        let output = child.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let own = text.split("<<<").nth(1).and_then(|t| t.rsplit_once(">>>")).expect("the child's output").0;
        same(&first, own, &format!("process {n}"));
    }
}

#[track_caller]
fn same(one: &str, other: &str, which: &str) {
    for (a, b) in one.lines().zip(other.lines()) {
        assert_eq!(a, b, "{which}");
    }
    assert_eq!(one, other, "{which}");
}

#[test]
fn seeds_and_clocks_change_what_they_should() {
    for line in [
        "echo $RANDOM",
        "echo $SRANDOM",
        "echo ${SRANDOM:0:6}",
        "trap 'echo $SRANDOM' EXIT",
        "bash -c 'echo $SRANDOM $RANDOM'",
        "seq 50 | sort -R",
        "seq 50 | shuf",
        "uuidgen",
        "cat /proc/sys/kernel/random/uuid",
        "openssl rand -hex 8",
        "head -c 9 /dev/urandom | md5sum",
        "dd if=/dev/random bs=9 count=1 2> /dev/null | md5sum",
    ] {
        let throws: Vec<String> = (0..3).map(|seed| shown(line, seed, 0)).collect();
        assert!(throws[0] != throws[1] && throws[1] != throws[2], "{line}: {throws:?}");
        assert!(throws[0].ends_with("--- stderr\n--- Ok(0)\n"), "{line}: {throws:?}");
        assert_eq!(throws[2], shown(line, 2, 99), "{line}: the clock has no part in it");
    }
    for line in ["date", "echo $EPOCHSECONDS", "echo $EPOCHREALTIME", "date +%s.%N", "date -d tomorrow"] {
        let times: Vec<String> = (0..3).map(|day| shown(line, 0, day * 86_400)).collect();
        assert!(times[0] != times[1] && times[1] != times[2], "{line}: {times:?}");
        assert_eq!(times[2], shown(line, 9, 2 * 86_400), "{line}: the seed has no part in it");
    }
    assert_eq!(shown("echo $SECONDS; sleep 70; echo $SECONDS", 0, 5), "0\n70\n--- stderr\n--- Ok(0)\n");
}

#[test]
fn a_throw_is_followed_by_another() {
    // What is always the same is not a chance.
    for line in
        ["echo ${SRANDOM:0:9}", "echo $SRANDOM", "uuidgen", "seq 30 | sort -R | tr '\\n' ' '", "echo $RANDOM"]
    {
        let out = shown(&format!("{line}; echo; {line}; echo; {line}"), 0, 0);
        let all: Vec<&str> = out.lines().filter(|l| !l.is_empty()).take(3).collect();
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{line}: {out}");
    }
}

#[test]
fn timeouts_are_of_the_script_s_time() {
    let text = "timeout 1 sleep 5; echo $? $SECONDS\n\
                timeout 5 sleep 1; echo $? $SECONDS\n\
                for i in 1 2 3; do timeout 1 bash -c 'sleep 5; echo no'; echo $? $SECONDS; done\n\
                timeout 600 sleep 400; echo $? $SECONDS\n\
                x=1; timeout 1 bash -c 'x=2; sleep 9'; echo $x\n\
                while :; do for j in 1 2; do timeout 1 sh -c 'eval sleep 2'; break 2; done; done; echo $?\n";
    let want = "124 1\n0 2\n124 3\n124 4\n124 5\n0 405\n1\n0\n--- stderr\n--- Ok(0)\n";
    assert_eq!(shown(text, 0, 0), want);
}

/// Jobs in the background and the script in front of them read scripts at the same time; folders have many files. Each line
/// runs often: what hangs on threads or on a hash shows in one run of ten or so.
#[test]
fn jobs_and_folders_have_one_order() {
    for text in [
        "(bash -c 'echo a; bash -c \"echo b\"'; eval 'echo c') & bash -c 'echo d; sh -c \"echo e\"'; eval 'echo f'; wait",
        "echo 'echo $1; [ $1 -gt 3 ] || . /run/x $(($1+1))' > /run/x; . /run/x 0 & . /run/x 1 & bash /run/x 2; wait",
        "for i in 1 2 3; do bash -c \"echo $i; sleep 1; eval 'echo again $i'\" & done; eval 'echo first'; wait",
        "f() { [ $1 = 0 ] || { eval 'f $(($1-1)) &'; bash -c 'echo -n x'; wait; echo $1; }; }; f 4",
        "mkdir -p /run/d/e; for i in 9 2 7 4 1 8; do echo $i > /run/d/$i; echo $i > /run/d/e/$i; done; cd /run; \
         find d; ls -U d; ls -f d; ls -R d; grep -r . d; cp -rv d g; du -a g; tar cvf x.tar g; rm -rv g",
        "declare -A a; for i in z y x w v; do a[$i]=$i; export E$i=$i; alias $i=$i; done; \
         echo ${!a[@]} ${a[@]}; declare -p a; export -p; alias; set | grep E; env | grep E; declare -F; compgen -v E",
    ] {
        let first = shown(text, 0, 0);
        assert!(first.contains("--- Ok(0)"), "{first}");
        for n in 0..30 {
            same(&first, &shown(text, 0, 0), &format!("run {n} of {text}"));
        }
    }
}
