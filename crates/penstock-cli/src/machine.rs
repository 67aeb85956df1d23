//! `penstock tc|ip|iptables|…`, and the program called by those names: the tools themselves, on a virtual machine.

use anyhow::Result;
use penstock_machine::dump::Wanted;
use penstock_machine::{Machine, advice, is_tool};
use penstock_measure::text::visible;
use penstock_model::Kernel;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The words of a tool when this process was called as one: by its name (`tc …`, a link to this program) or by
/// `penstock tc …`. Nothing between here and the tool looks at them.
pub fn called(args: &[OsString]) -> Option<Vec<String>> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let own = args.first().and_then(|first| Path::new(first).file_name());
    let own = own.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if is_tool(&own) {
        return Some(std::iter::once(own).chain(args.iter().skip(1).map(text)).collect());
    }
    let words: Vec<String> = args.iter().skip(1).map(text).collect();
    words.first().is_some_and(|name| is_tool(name)).then_some(words)
}

/// Whether a tool's words are `tc dump`, which is ours: the real tc has no such object. A link called `tc` is the real tc's double.
pub fn asks_for_dump(args: &[OsString], words: &[String]) -> bool {
    words.starts_with(&["tc".to_owned(), "dump".to_owned()]) && args.get(1).is_some_and(|w| w == "tc")
}

/// Runs the tool; standard output, standard error and exit status are its own. Our advice follows on standard error
/// where a person reads it.
pub fn main(words: &[String]) -> Result<ExitCode> {
    let output = Machine::new(&folder()?, kernel()?).exec(words).map_err(anyhow::Error::msg)?;
    crate::print(&output.stdout)?;
    crate::complain(&output.stderr);
    if advises() {
        crate::complain(&visible(&advice(&output)));
    }
    Ok(ExitCode::from(output.status as u8))
}

/// `penstock tc dump [dev DEVICE] [--all]`: the commands that rebuild the state; `penstock tc dump --from FILE…`: those that make what
/// the real tc showed.
pub fn dump(words: &[String]) -> Result<ExitCode> {
    let mut wanted = Wanted::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "dev" => wanted.dev = words.next().cloned(),
            "--all" | "-a" => wanted.all = true,
            "--from" => return crate::import::from(&words.cloned().collect::<Vec<_>>()),
            _ => anyhow::bail!(
                "penstock tc dump [dev DEVICE] [--all] [--from [DEV=]FILE…]: what is \"{word}\"?"
            ),
        }
    }
    let dumped = Machine::new(&folder()?, kernel()?).dump(&wanted).map_err(anyhow::Error::msg)?;
    for note in &dumped.notes {
        crate::say(&format!("note: {note}"));
    }
    crate::print(&dumped.commands.iter().map(|c| format!("{c}\n")).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether our advice is wanted: `PENSTOCK_ADVICE` says so, else whether standard error is a terminal.
pub fn advises() -> bool {
    match std::env::var("PENSTOCK_ADVICE") {
        Ok(said) if !said.is_empty() => !["0", "no", "off"].contains(&said.as_str()),
        _ => std::io::stderr().is_terminal(),
    }
}

/// The machine's kernel.
pub fn kernel() -> Result<Kernel> {
    match std::env::var("PENSTOCK_KERNEL") {
        Ok(name) if !name.is_empty() => {
            Kernel::parse(&name).map_err(|e| anyhow::anyhow!("PENSTOCK_KERNEL: {e}"))
        }
        _ => Ok(Kernel::default()),
    }
}

/// Where the state is kept.
pub fn folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("PENSTOCK_STATE") {
        return Ok(folder);
    }
    if let Some(folder) = set("XDG_RUNTIME_DIR") {
        return Ok(folder.join("penstock"));
    }
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state =
        state.ok_or_else(|| anyhow::anyhow!("there is no home folder; set PENSTOCK_STATE to a folder"))?;
    Ok(state.join("penstock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], want: Option<&[&str]>) {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let want = want.map(|w| w.iter().map(|&w| w.to_owned()).collect::<Vec<_>>());
        assert_eq!(called(&args), want, "{args:?}");
    }

    #[test]
    fn the_tools_take_their_words_as_they_stand() {
        check(&["penstock", "tc", "-s", "qdisc", "--help"], Some(&["tc", "-s", "qdisc", "--help"]));
        check(&["/opt/x/tc", "qdisc", "show"], Some(&["tc", "qdisc", "show"]));
        check(&["iptables-save"], Some(&["iptables-save"]));
        check(&["penstock", "ping", "-c", "1", "-h"], Some(&["ping", "-c", "1", "-h"]));
        check(&["tc", "tc"], Some(&["tc", "tc"]));
        check(&["penstock", "run", "tc"], None);
        check(&["penstock"], None);
        check(&[], None);
        let words = ["tc", "dump"].map(str::to_owned);
        assert!(asks_for_dump(&["penstock", "tc", "dump"].map(OsString::from), &words));
        assert!(!asks_for_dump(&["tc", "dump"].map(OsString::from), &words));
    }
}
