//! The scripts on TCP itself of google/packetdrill, run unchanged; fetched when this test runs, and never kept. Those that do not pass stand in
//! `vectors/packetdrill.txt` with their reasons, and no others may.

mod material;

use penstock_model::Kernel;
use penstock_packetdrill::{Options, files_of, parse, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FETCH: [&[&str]; 3] = [
    &["git", "init", "-q", "."],
    &[
        "git",
        "fetch",
        "-q",
        "--depth",
        "1",
        "https://github.com/google/packetdrill",
        "2c4001c4d6fc04a3bbd01d4b92be62717a37648a",
    ],
    &["git", "checkout", "-q", "FETCH_HEAD"],
];

/// Folders of scripts that are on something else.
const OTHERS: [&str; 11] = [
    // It has a test of its own.
    "fastopen",
    "zerocopy",
    "psp",
    "epoll",
    "timestamping",
    "inq",
    "splice",
    "sendfile",
    "md5",
    "ioctl",
    "gro",
];

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|e| e == "pkt") {
            found.push(path);
        }
    }
}

/// The scripts that Linux 7.2 carries in its own source (tools/testing/selftests/net/packetdrill), from the folder that `PENSTOCK_SELFTESTS` names.
#[test]
fn scripts_of_the_newest_kernel_pass() {
    let Some(folder) = std::env::var_os("PENSTOCK_SELFTESTS").map(PathBuf::from) else { return };
    let mut paths = Vec::new();
    scripts(&folder, &mut paths);
    paths.sort();
    let list = include_str!("../../../vectors/packetdrill-7.2.txt");
    let known: BTreeMap<&str, &str> =
        list.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(": ")).collect();
    let mut wrong = Vec::new();
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let failure = match parse(&text, &[]) {
            Err(f) => Some(f.message),
            Ok(script) => {
                let files = files_of(&script, &mut |p| std::fs::read_to_string(folder.join(p)).ok());
                let options = Options { kernel: Kernel::V7_2, files, ..Options::default() };
                run(&script, &options).failure.map(|f| f.message)
            }
        };
        match (failure, known.get(name.as_str())) {
            (Some(message), None) => wrong.push(format!("{name}: {message}")),
            (None, Some(_)) => {
                wrong.push(format!("{name} passes, but stands in vectors/packetdrill-7.2.txt"))
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(paths.len() >= known.len());
}

/// Runs scripts below a folder, each with what `defines` gives its text: all pass but those that a list of `vectors/` names with a reason.
fn pass_but(
    tcp: &Path,
    paths: &[PathBuf],
    file: &str,
    list: &str,
    defines: impl Fn(&str) -> Vec<(String, String)>,
) {
    let known: BTreeMap<&str, &str> =
        list.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(": ")).collect();
    let mut wrong = Vec::new();
    let mut failed = 0;
    for path in paths {
        let name = path.strip_prefix(tcp).unwrap().display().to_string();
        let text = material::text(path.clone());
        let beside = path.parent().unwrap();
        let failure = match parse(&text, &defines(&text)) {
            Err(f) => Some((f.line, f.message)),
            Ok(script) => {
                let files = files_of(&script, &mut |p| std::fs::read_to_string(beside.join(p)).ok());
                run(&script, &Options { files, ..Options::default() }).failure.map(|f| (f.line, f.message))
            }
        };
        failed += usize::from(failure.is_some());
        match (failure, known.get(name.as_str())) {
            (Some((line, message)), None) => wrong.push(format!("{name}:{line}: {message}")),
            (None, Some(_)) => wrong.push(format!("{name} passes, but stands in {file}")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(failed, known.len(), "{file} names scripts that are not there");
}

#[test]
fn scripts_on_tcp_itself_pass() {
    let Some(folder) = material::fetched("packetdrill", &FETCH) else { return };
    let tcp = folder.join("gtests/net/tcp");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&tcp).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !OTHERS.iter().any(|o| path.ends_with(o)) {
            scripts(&path, &mut paths);
        }
    }
    paths.sort();
    assert_eq!(paths.len(), 73);
    let list = include_str!("../../../vectors/packetdrill.txt");
    pass_but(&tcp, &paths, "vectors/packetdrill.txt", list, |_| Vec::new());
}

/// The scripts on TCP Fast Open, with the cookies that the suite's own runner (run_all.py) gives its addresses.
#[test]
fn scripts_on_fast_open_pass() {
    let Some(folder) = material::fetched("packetdrill", &FETCH) else { return };
    let tcp = folder.join("gtests/net/tcp");
    let mut paths = Vec::new();
    scripts(&tcp.join("fastopen"), &mut paths);
    paths.sort();
    assert_eq!(paths.len(), 64);
    let list = include_str!("../../../vectors/packetdrill-fastopen.txt");
    pass_but(&tcp, &paths, "vectors/packetdrill-fastopen.txt", list, |text| {
        let six = text.contains("--ip_version=ipv6");
        let cookie = if six { "c1d1e9742a47a9bc" } else { "3021b9d889017eeb" };
        let defines = [("TFO_COOKIE", cookie), ("CODE", "host_unreachable")];
        defines.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    });
}
