//! What the real tc and kernel made of a script's commands: `vectors/scripts/NAME.jsonl`, recorded by
//! `cargo xtask difftc --sequences FOLDER --record` from the commands that these tests write with `PENSTOCK_SEQUENCES=FOLDER`.
//! That every command answers as the real one did is a test of xtask's; here a script has to give those commands, and to leave
//! that state.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::Kept;
use std::path::{Path, PathBuf};

/// Of a command: its line, exit code, standard output and first error line.
type Step = (String, i64, String, String);

/// A script's recorded commands.
pub struct Golden {
    name: &'static str,
    /// Dummy devices that are there before.
    devices: &'static [&'static str],
    /// Devices that the script makes.
    made: &'static [&'static str],
    /// The last handle the kernel had chosen before, and the commands with their answers.
    recorded: Option<(u32, Vec<Step>)>,
}

impl Golden {
    /// The recording of a script on a machine with these dummy devices; it makes those others.
    pub fn open(
        name: &'static str,
        devices: &'static [&'static str],
        made: &'static [&'static str],
    ) -> Golden {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/scripts/{name}.jsonl"));
        let recorded = std::fs::read_to_string(&path).ok().map(|text| {
            let (_, auto, steps): (u64, u32, Vec<Step>) = serde_json::from_str(&text).unwrap();
            (auto, steps)
        });
        Golden { name, devices, made, recorded }
    }

    /// The machine as it was when the script began.
    pub fn machine(&self) -> Host {
        let mut host = Host::new("penstock", Kernel::V6_12, 1);
        for line in self.setup() {
            assert_eq!(host.exec(&line, Time::ZERO).status, 0, "{line}");
        }
        if let Some((auto, _)) = &self.recorded {
            host.set_auto_handle(auto << 16);
        }
        host
    }

    fn setup(&self) -> Vec<String> {
        let up = |d: &&str| [format!("ip link add {d} type dummy"), format!("ip link set {d} up")];
        self.devices.iter().flat_map(up).collect()
    }

    fn shows(&self) -> Vec<String> {
        let what =
            ["qdisc show dev D", "class show dev D", "filter show dev D", "filter show dev D parent ffff:"];
        let of = |d: &&str| what.map(|w| format!("tc -d {}", w.replace('D', d)));
        self.devices.iter().chain(self.made).flat_map(of).collect()
    }

    /// Whether the script gave the recorded commands and left the recorded state.
    pub fn check(&self, kept: &Kept, host: &mut Host) {
        let mut sequence = self.setup();
        sequence.extend(kept.commands.iter().filter(|c| recordable(&c.words)).map(|c| line(&c.words)));
        let shows = self.shows();
        sequence.extend(shows.iter().cloned());
        if let Some(folder) = std::env::var_os("PENSTOCK_SEQUENCES").map(PathBuf::from) {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{}.cmds", self.name)), sequence.join("\n") + "\n").unwrap();
        }
        let Some((_, steps)) = &self.recorded else {
            panic!(
                "vectors/scripts/{}.jsonl is missing: cargo xtask difftc --help says how to record it",
                self.name
            )
        };
        let commands: Vec<&str> = steps.iter().map(|(command, ..)| command.as_str()).collect();
        assert_eq!(sequence, commands, "{}: other commands than those recorded", self.name);
        for (show, (_, status, stdout, _)) in shows.iter().zip(&steps[steps.len() - shows.len()..]) {
            let ours = host.exec(show, Time::ZERO);
            assert_eq!((i64::from(ours.status), &ours.stdout), (*status, stdout), "{}: {show}", self.name);
        }
    }
}

/// Commands whose answers are the same on every machine: not those that show addresses of devices, nor what is not tc's or ip's.
fn recordable(words: &[String]) -> bool {
    let verb = |verb: &&str| words.iter().any(|w| w == verb);
    match words[0].as_str() {
        "tc" => !words.iter().any(|w| w == "-b" || w == "-batch"),
        "ip" => ["add", "set", "del", "delete"].iter().any(verb),
        _ => false,
    }
}

fn line(words: &[String]) -> String {
    let plain = |w: &String| {
        !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || "-_=+:./,%@".contains(c))
    };
    let word = |w: &String| if plain(w) { w.clone() } else { format!("'{w}'") };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
