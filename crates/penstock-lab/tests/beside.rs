//! Files beside an experiment that its scripts source, read and give to `tc -batch`; and where a fault of syntax is.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};
use penstock_model::Diagnostic;

const FILES: [(&str, &str); 5] = [
    ("exp/lib.sh", ". ./parts/names.sh\nshape() { tc qdisc add dev \"$DEV\" root \"$1\"; }\n"),
    ("exp/parts/names.sh", "DEV=eth0\n"),
    ("exp/parts/red.tc", "qdisc add dev eth0 root red limit 60KB avpkt 1000\n"),
    ("exp/setup/w.sh", ". ./lib.sh\n. \"${0%/*}/own.sh\"\nshape $KIND\n"),
    ("exp/setup/own.sh", "KIND=prio\n"),
];

/// What the app printed behind a setup, or what was refused.
fn printed(setup: &str, app: &str) -> Result<String, Vec<Diagnostic>> {
    let text = format!(
        "duration = \"1s\"\n[host.r]\neth0 = \"10.0.0.1/24\"\nsetup = '''{setup}'''\n[[app]]\non = \"r\"\nrun = '''{app}'''\n"
    );
    let loader = |name: &str| {
        let file = FILES.iter().find(|f| f.0 == name);
        file.map(|f| f.1.to_owned()).ok_or_else(|| "No such file or directory".to_owned())
    };
    let parsed = experiment::parse_with(&text, "exp/x.toml", &loader)?;
    run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .map(|mut outcome| outcome.outputs.remove(0))
}

const ROOT: &str = "tc qdisc show dev eth0 root | cut -d' ' -f2";

#[test]
fn scripts_find_what_lies_beside_the_experiment() {
    for (setup, app, want) in [
        (". ./lib.sh; shape sfq", ROOT, "sfq\n"),
        ("source lib.sh && shape drr", ROOT, "drr\n"),
        ("tc -batch parts/red.tc", ROOT, "red\n"),
        (
            "for f in ./parts/*.sh; do . $f; done\n# parts/names.sh\necho parts/names.sh >/dev/null; tc qdisc add dev $DEV root sfq",
            ROOT,
            "sfq\n",
        ),
        ("@setup/w.sh", ROOT, "prio\n"),
        ("true", ". ./parts/names.sh; echo $DEV", "eth0\n"),
        ("[ -f none.sh ] || tc qdisc add dev eth0 root sfq", ROOT, "sfq\n"),
    ] {
        assert_eq!(printed(setup, app).map_err(|d| d[0].to_string()), Ok(want.to_owned()), "{setup}");
    }
    let refused = printed(". ./none.sh", "true").unwrap_err();
    assert!(refused[0].message.contains("none.sh: No such file or directory"), "{}", refused[0]);
}

#[test]
fn a_fault_of_syntax_has_a_line_of_the_file() {
    let text = "duration = \"1s\"\n[host.r]\neth0 = \"10.0.0.1/24\"\nsetup = \"@w.sh\"\n";
    for (script, lines) in [
        ("tc qdisc add dev eth0 root sfq\nif true; then\n  tc qdisc\n\n", 4),
        ("echo \"a\n", 1),
        ("f() {\n", 1),
    ] {
        let parsed = experiment::parse_with(text, "x.toml", &|name| match name {
            "w.sh" => Ok(script.to_owned()),
            _ => Err("no".to_owned()),
        });
        let refused =
            run(&parsed.unwrap(), &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
                .err()
                .unwrap();
        assert_eq!(refused[0].file, "w.sh", "{}", refused[0]);
        assert!((1..=lines).contains(&refused[0].line), "{script:?}: {}", refused[0]);
    }
}
