//! The steps of the GitHub Action and the hook of pre-commit, as their runners call them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SHAPER: &str = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
    tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
    tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit\n\
    tc class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit\n";
const LINE: &str = "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
    [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n[[app]]\non = \"a\"\nrun = \"ping -c 1 10.0.0.2\"\n\
    [[expect]]\nwhat = \"a ping rtt\"\nvalue = \"<50ms\"\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-action-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }
    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
    /// Runs a program where penstock is in the path.
    fn call(&self, program: &str, words: &[&str], env: &[(&str, &str)]) -> Output {
        let own = Path::new(env!("CARGO_BIN_EXE_penstock")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.0).env("PATH", format!("{}:{path}", own.display()));
        command.env("GITHUB_OUTPUT", self.0.join("output")).env_remove("GITHUB_STEP_SUMMARY");
        command.envs(env.iter().copied()).env("FOLDER", "results").output().unwrap()
    }
    /// Runs a step of the action.
    fn step(&self, name: &str, env: &[(&str, &str)]) -> (i32, String) {
        let script = root().join("action").join(name);
        let done = self.call(script.to_str().unwrap(), &[], env);
        let said = [done.stdout, done.stderr].concat();
        (done.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn findings_become_sarif_and_annotations() {
    let place = Place::new("check");
    place.write("good.sh", SHAPER);
    place.write("bad.sh", &SHAPER.replace("6mbit", "8mbit"));
    let (status, said) = place
        .step("check.sh", &[("SCRIPTS", "good.sh\n\nbad.sh\n"), ("DEV", "eth0"), ("FAIL_ON", "warning")]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("::warning file=bad.sh,line=4"), "{said}");
    let sarif: serde_json::Value = serde_json::from_str(&place.read("results/findings.sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "PS101");
    assert_eq!(place.read("output"), "sarif=results/findings.sarif\n");
    let (status, said) = place.step("check.sh", &[("SCRIPTS", "good.sh")]);
    assert_eq!(status, 0, "{said}");
    let (status, _) = place.step("check.sh", &[("SCRIPTS", "bad.sh"), ("FAIL_ON", "never")]);
    assert_eq!(status, 0);
}

#[test]
fn a_change_becomes_a_comment() {
    let place = Place::new("diff");
    place.write("shaper.sh", SHAPER);
    place.write("same.sh", SHAPER);
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"];
        let done = place.call("git", &[&who[..], words].concat(), &[]);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    place.write("shaper.sh", &SHAPER.replace("rate 4mbit", "rate 3mbit"));
    place.write("new.sh", SHAPER);
    let env = [("SCRIPTS", "shaper.sh\nsame.sh\nnew.sh"), ("DEV", "eth0"), ("BASE", "HEAD")];
    let (status, said) = place.step("diff.sh", &env);
    assert_eq!(status, 0, "{said}");
    let comment = place.read("results/diff.md");
    for part in [
        "class 1:10: rate 4mbit",
        "-> rate 3mbit",
        "`same.sh`\n\ntreats all traffic as before.",
        "`new.sh`\n\nis new.",
    ] {
        assert!(comment.contains(part), "{part}: {comment}");
    }
    assert_eq!(place.read("output"), "comment=results/diff.md\n");
}

#[test]
fn expectations_fail_the_job() {
    let place = Place::new("run");
    place.write("line.toml", LINE);
    place.write("slow.toml", &LINE.replace("<50ms", "<1us"));
    let (status, said) = place.step("run.sh", &[("EXPERIMENTS", "slow.toml\nline.toml\n")]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("::error file=slow.toml::slow.toml ended with status 1"), "{said}");
    assert!(place.read("results/junit/1-slow.xml").contains("failures=\"1\""));
    assert!(place.read("results/junit/2-line.xml").contains("failures=\"0\""));
    assert!(place.0.join("results/runs/2-line/report.html").is_file());
    assert_eq!(place.step("run.sh", &[("EXPERIMENTS", "line.toml")]).0, 0);
}

/// The files that the runners read name what is there.
#[test]
fn the_action_and_the_hook_name_what_there_is() {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    for name in ["check.sh", "diff.sh", "run.sh"] {
        assert!(action.contains(&format!("\"$GITHUB_ACTION_PATH/action/{name}\"")), "{name}");
        // Every variable of the script is given by its step.
        let script = fs::read_to_string(root().join("action").join(name)).unwrap();
        let step = action.split("    - id: ").find(|s| s.contains(name)).unwrap();
        for variable in ["SCRIPTS", "DEV", "RATE", "FAIL_ON", "BASE", "EXPERIMENTS", "FOLDER"] {
            let used = script.contains(&format!("${variable}")) || script.contains(&format!("${{{variable}"));
            assert_eq!(used, step.contains(&format!("        {variable}: ")), "{name}: {variable}");
        }
    }
    let hooks = fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    let entry = hooks.lines().find_map(|l| l.trim().strip_prefix("entry: penstock ")).unwrap();
    let place = Place::new("hook");
    place.write("good.sh", SHAPER);
    place.write("plain.sh", "echo no traffic here\n");
    place.write("bad.sh", &SHAPER.replace("6mbit", "8mbit"));
    let hook = |files: &[&str]| {
        let words: Vec<&str> = entry.split(' ').chain(files.iter().copied()).collect();
        place.call("penstock", &words, &[]).status.code()
    };
    assert_eq!(hook(&["good.sh", "plain.sh"]), Some(0));
    assert_eq!(hook(&["good.sh", "bad.sh"]), Some(1));
}
