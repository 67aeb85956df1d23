//! Scripts with one mistake or several, each named in the script's head, and scripts without any.
//!
//! The head's lines: `# penstock-check: CODE` names what the line below finds … on which line: `# expect: PS101 7`. `# with: --rate 10mbit --dev
//! eth0 --kernel 2.6.35` are settings. A script without `# expect` is clean.

use penstock_check::{Finding, Settings, Which, check, explain, facts, fixed};
use penstock_model::{Kernel, Rate};
use penstock_shell::Script;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

struct Case {
    name: String,
    script: Script,
    settings: Settings,
    want: Vec<(String, u32)>,
}

fn read(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut settings = Settings::default();
    let mut want = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# expect: ") {
            let (code, line) = rest.split_once(' ').unwrap_or_else(|| panic!("{name}: {line}"));
            want.push((code.to_owned(), line.parse().unwrap()));
        }
        if let Some(rest) = line.strip_prefix("# with: ") {
            let words: Vec<&str> = rest.split(' ').collect();
            for pair in words.chunks(2) {
                match pair {
                    ["--rate", rate] => settings.rate = Some(Rate::parse(rate).unwrap().bytes_per_s()),
                    ["--dev", dev] => settings.dev = Some((*dev).to_owned()),
                    ["--kernel", kernel] => settings.kernel = Kernel::parse(kernel).unwrap(),
                    _ => panic!("{name}: {rest}"),
                }
            }
        }
    }
    want.sort();
    let script = Script { text, name: name.clone(), ..Script::default() };
    Case { name, script, settings, want }
}

fn cases() -> Vec<Case> {
    // Another corpus of the same form: PENSTOCK_CORPUS=FOLDER.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let folder = std::env::var_os("PENSTOCK_CORPUS").map_or(own, Into::into);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|p| read(p)).collect()
}

#[test]
fn every_planted_mistake_is_found_at_its_line_and_nothing_else() {
    let mut wrong = String::new();
    for case in cases() {
        let findings = check(&case.script, &case.settings);
        let mut got: Vec<(String, u32)> = findings.iter().map(|f| (f.code.to_owned(), f.line)).collect();
        got.sort();
        if got != case.want {
            wrong += &format!("{}:\n  want {:?}\n  got  {:?}\n", case.name, case.want, got);
            for f in &findings {
                wrong += &format!("    {} {}: {} | {}\n", f.code, f.line, f.message, f.reason);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_corpus_is_large_and_names_every_rule() {
    let cases = cases();
    if std::env::var_os("PENSTOCK_CORPUS").is_some() {
        return;
    }
    assert!(cases.len() >= 150, "{} scripts", cases.len());
    let planted: BTreeSet<&str> = cases.iter().flat_map(|c| c.want.iter().map(|w| w.0.as_str())).collect();
    let missing: Vec<&str> =
        penstock_check::rules::all().map(|r| r.code).filter(|c| !planted.contains(c)).collect();
    assert!(missing.is_empty(), "no script for {missing:?}");
}

/// What a finding says, apart from where: a line that it names is that line's text.
fn gist(f: &Finding, text: &str) -> (&'static str, String, String) {
    let mut said = String::new();
    let mut words = f.message.split(' ').peekable();
    while let Some(word) = words.next() {
        said += &format!(" {word}");
        if let Some(number) = words.peek().filter(|_| word == "line").and_then(|n| n.parse::<usize>().ok()) {
            said += text.lines().nth(number.saturating_sub(1)).unwrap_or("");
            words.next();
        }
    }
    (f.code, f.file.clone(), said)
}

/// Class and qdisc ids in a text: `1:10`, `20:`.
fn ids(text: &str) -> BTreeSet<String> {
    let id = |w: &&str| {
        let (major, minor) = w.split_once(':').unwrap_or((w, "x"));
        let hex = |t: &str| t.chars().all(|c| c.is_ascii_hexdigit());
        !major.is_empty() && hex(major) && hex(minor)
    };
    let parts =
        text.split(|c: char| c.is_whitespace() || ",;()`".contains(c)).map(|w| w.trim_end_matches('.'));
    parts.filter(id).map(str::to_owned).collect()
}

/// Whether a difference is that of the line and the fix: one has the words before, the other those behind.
fn said_by_words(difference: &str, line: &str, fix: &str) -> bool {
    let Some((old, new)) = difference.rsplit_once(": ").and_then(|d| d.1.split_once(" -> ")) else {
        return false;
    };
    let has = |text: &str, words: &str| words.split(' ').all(|w| text.split_whitespace().any(|t| t == w));
    has(line, old) && has(fix, new)
}

/// What a fix changes in the machine that the finding does not speak of.
fn unsaid(case: &Case, finding: &Finding, text: String) -> Vec<String> {
    // What was cut off, or ended the script, is done now.
    if matches!(finding.code, "PS007" | "PS252") {
        return Vec::new();
    }
    let script = Script { text, ..case.script.clone() };
    let (a, b) = (facts(&case.script, &case.settings), facts(&script, &case.settings));
    let told = ids(&format!("{} {} {}", finding.message, finding.reason, finding.fix));
    let line = case.script.text.lines().nth((finding.line as usize).saturating_sub(1)).unwrap_or("");
    let mut out = Vec::new();
    for device in a.shaped().map(|d| d.name.clone()).collect::<BTreeSet<_>>() {
        if explain::device(&a, &device).is_none() && explain::device(&b, &device).is_none() {
            continue;
        }
        let own = told.clone();
        let said = explain::diff(&a, &b, &device).unwrap_or_default();
        // A line of what differs is about an id that the finding or its line names, or about the device's root.
        let meant = |l: &String| {
            let about = ids(l);
            about.iter().any(|i| own.contains(i) || line.contains(i.as_str()) || line.contains('$'))
                || l.starts_with("root:")
                || said_by_words(l, line, &finding.fix)
                || l.contains(" -> ") && about.is_empty()
        };
        out.extend(said.into_iter().filter(|l| !meant(l)));
    }
    out
}

/// What is wrong with the fixes of a script's findings: each has to end its own, to make no other and to change what it says.
fn wrong_fixes(case: &Case, safe: &mut BTreeSet<&'static str>) -> String {
    let mut wrong = String::new();
    let before = check(&case.script, &case.settings);
    let known: BTreeSet<_> = before.iter().map(|f| gist(f, &case.script.text)).collect();
    for finding in before.iter().filter(|f| !f.edits.is_empty()) {
        let alone = [finding.clone()];
        let (text, count) = fixed(&case.script.text, &alone, Which::Likely);
        assert_eq!(count, 1, "{}", case.name);
        let script = Script { text: text.clone(), ..case.script.clone() };
        let after = check(&script, &case.settings);
        let many = |all: &[Finding]| all.iter().filter(|f| f.code == finding.code).count();
        let gone = many(&after) < many(&before);
        let new: Vec<String> = after
            .iter()
            .filter(|f| !known.contains(&gist(f, &text)) && (f.code != finding.code || !gone))
            .map(|f| format!("{} {}: {}", f.code, f.line, f.message))
            .collect();
        let changed = if finding.safe { unsaid(case, finding, text) } else { Vec::new() };
        if !gone || finding.safe && !new.is_empty() || !changed.is_empty() {
            wrong += &format!(
                "{} {} {}: gone {gone}, new {new:?}, changes {changed:?}\n    {}\n",
                case.name, finding.code, finding.line, finding.fix
            );
        }
        if finding.safe {
            safe.insert(finding.code);
        }
    }
    wrong
}

#[test]
fn every_fix_ends_its_finding_makes_no_other_and_changes_what_it_says() {
    let (mut wrong, mut safe) = (String::new(), BTreeSet::new());
    for case in cases() {
        wrong += &wrong_fixes(&case, &mut safe);
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(
        safe.len() >= 40 || std::env::var_os("PENSTOCK_CORPUS").is_some(),
        "{} rules: {safe:?}",
        safe.len()
    );
}

/// Two scripts behind each other, the second on devices of its own: what is wrong with one does not change what the fixes of the other do.
#[test]
fn fixes_hold_beside_other_mistakes() {
    let shell = |c: &Case| c.name.ends_with(".sh") && !c.want.is_empty() && !c.script.text.contains("exit");
    let cases: Vec<Case> = cases().into_iter().filter(shell).collect();
    let count = std::env::var("PENSTOCK_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut seed = 0x5eed_u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % cases.len().max(1)
    };
    // PENSTOCK_PAIRS_SKIP=N: other pairs, those behind the first N.
    let skip = std::env::var("PENSTOCK_PAIRS_SKIP").ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    for _ in 0..2 * skip {
        draw();
    }
    let (mut wrong, mut safe, mut tried) = (String::new(), BTreeSet::new(), 0);
    while tried < count && cases.len() > 1 {
        let (a, b) = (&cases[draw()], &cases[draw()]);
        if a.settings != b.settings || a.name == b.name {
            continue;
        }
        let mut other = b.script.text.clone();
        let devices =
            [("eth", "en"), ("ppp", "sl"), ("ifb0", "ifb6"), ("ifb1", "ifb7"), ("br-lan", "br-own")];
        for (dev, new) in devices {
            other = other.replace(dev, new);
        }
        let name = format!("{}+{}", a.name, b.name);
        let script =
            Script { text: format!("{}\n{other}", a.script.text), name: name.clone(), ..Script::default() };
        let both = Case { name, script, settings: a.settings.clone(), want: Vec::new() };
        wrong += &wrong_fixes(&both, &mut safe);
        tried += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn all_safe_fixes_together_leave_fewer_findings() {
    for case in cases() {
        let before = check(&case.script, &case.settings);
        let (text, count) = fixed(&case.script.text, &before, Which::Safe);
        if count == 0 {
            assert_eq!(text, case.script.text, "{}", case.name);
            continue;
        }
        let after = check(&Script { text, ..case.script.clone() }, &case.settings);
        assert!(after.len() < before.len(), "{}: {before:#?}\n{after:#?}", case.name);
    }
}

/// What the fix of the only finding of this code makes of the last line, and whether it is a safe one.
fn fix_of(code: &str, text: &str) -> Option<(String, bool)> {
    let script = Script { text: text.to_owned(), ..Script::default() };
    let of_code = |f: &Finding| f.code == code;
    let found: Vec<Finding> = check(&script, &Settings::default()).into_iter().filter(of_code).collect();
    let [one] = found.as_slice() else { return None };
    let (text, count) = fixed(text, &found, Which::Likely);
    (count == 1).then(|| (text.lines().last().unwrap_or("").to_owned(), one.safe))
}

#[test]
fn a_handle_in_another_base_becomes_the_mark_that_is_set() {
    let script = |handle: &str| {
        format!(
            "iptables -t mangle -A FORWARD -o eth0 -d 203.0.113.0/24 -j MARK --set-mark 100\ntc qdisc replace dev eth0 root handle 1: prio\n\
             tc filter replace dev eth0 parent 1: protocol ip prio 1 handle {handle} fw flowid 1:1\n"
        )
    };
    let (line, safe) = fix_of("PS201", &script("0x100")).expect("one finding with a fix");
    assert_eq!(line, "tc filter replace dev eth0 parent 1: protocol ip prio 1 handle 100 fw flowid 1:1");
    assert!(safe);
    assert_eq!(fix_of("PS201", &script("0x64")), None);
}

#[test]
fn a_mark_of_what_comes_in_becomes_one_of_what_leaves() {
    let script = |rule: &str| {
        format!(
            "tc qdisc replace dev eth0 root handle 1: htb default 30\ntc class replace dev eth0 parent 1: classid 1:10 htb rate 6mbit\n\
             tc class replace dev eth0 parent 1: classid 1:30 htb rate 4mbit\n\
             tc filter replace dev eth0 parent 1: protocol ip prio 1 handle 10 fw flowid 1:10\n{rule}\n"
        )
    };
    let rule = "iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 10";
    let wrong = "iptables -t mangle -A PREROUTING -i eth0 -p tcp --dport 22 -j MARK --set-mark 10";
    let (line, safe) = fix_of("PS204", &script(wrong)).expect("one finding with a fix");
    assert_eq!((line.as_str(), safe), (rule, false));
    assert_eq!(fix_of("PS204", &script(rule)), None);
}

/// The unpacked Debian package; `None` where it cannot be fetched.
fn package(name: &str) -> Option<std::path::PathBuf> {
    use std::process::Command;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian-check").join(name);
    let unpacked = folder.join("files");
    if unpacked.is_dir() {
        return Some(unpacked);
    }
    // Past the test harness, which keeps what a passing test prints.
    let skipped = |why: &str| {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the Debian package {name} is not fetched: {why}");
    };
    if std::env::var_os("PENSTOCK_QUICK").is_some() {
        skipped("PENSTOCK_QUICK is set");
        return None;
    }
    std::fs::create_dir_all(&folder).expect("a folder in the build's own place");
    let run = |program: &str, args: &[&str]| {
        Command::new(program).args(args).current_dir(&folder).output().is_ok_and(|o| o.status.success())
    };
    let fetched = run("apt-get", &["download", "-q", name]);
    let file = std::fs::read_dir(&folder)
        .expect("the folder that was just made")
        .flatten()
        .map(|e| e.path())
        .find(|p| p.extension().is_some_and(|e| e == "deb"));
    if fetched && file.is_some_and(|f| run("dpkg-deb", &["-x", &f.to_string_lossy(), "files"])) {
        return Some(unpacked);
    }
    skipped("apt-get download or dpkg-deb failed");
    None
}

#[test]
fn wondershaper_is_told_that_cbq_has_left_and_nothing_else() {
    let Some(files) = package("wondershaper") else { return };
    let text = std::fs::read_to_string(files.join("sbin/wondershaper")).unwrap();
    let args = ["eth0", "8000", "1000"].map(str::to_owned).to_vec();
    let script = Script { text, name: "/sbin/wondershaper".to_owned(), args, ..Script::default() };
    let codes: Vec<&str> = check(&script, &Settings::default()).iter().map(|f| f.code).collect();
    assert_eq!(codes, ["PS006"; 5]);
    let old = Settings { kernel: Kernel::V2_6_35, ..Settings::default() };
    assert_eq!(check(&script, &old), []);
}
