//! Programs: models that take the real ones' arguments and print the real ones' forms.

mod console;
pub(crate) mod daemon;
pub(crate) mod flow;
pub(crate) mod form;
pub(crate) mod iperf;
pub(crate) mod iperf3;
pub(crate) mod mtr;
pub(crate) mod options;
pub(crate) mod ping;
mod program;
pub(crate) mod scp;
pub(crate) mod session;
pub(crate) mod tracepath;
pub(crate) mod traceroute;

pub(crate) use crate::intent::Family;
pub(crate) use program::{Cx, Failure, Program, first_address, name_of_address, resolve};

use crate::net::Net;

/// The programs that there are.
const PROGRAMS: [&str; 16] = [
    "ping",
    "iperf",
    "iperf2",
    "iperf3",
    "scp",
    "pscp",
    "ssh",
    "putty",
    "plink",
    "telnet",
    "mtr",
    "tracepath",
    "tracepath4",
    "tracepath6",
    "traceroute",
    "traceroute6",
];

/// What is here of a program's options.
pub struct ProgramOptions {
    /// Its name, and others it is called by.
    pub names: &'static [&'static str],
    /// What it does, in a few words.
    pub about: &'static str,
    /// Its options as they are written, each with whether a value follows.
    pub options: Vec<(String, bool)>,
    /// Options of the real program that are refused by name, and what to do instead.
    pub not_here: &'static [(&'static str, &'static str)],
}

/// The programs, and what is here of their options.
pub fn programs() -> Vec<ProgramOptions> {
    fn written(known: &[options::Known]) -> Vec<(String, bool)> {
        let one = |k: &options::Known| {
            let letter = (!k.short.is_control()).then(|| format!("-{}", k.short));
            let long = (!k.long.is_empty()).then(|| format!("--{}", k.long));
            (letter.into_iter().chain(long).collect::<Vec<_>>().join(" "), k.value)
        };
        known.iter().map(one).collect()
    }
    let program = |names, about, known: &[options::Known], not_here| ProgramOptions {
        names,
        about,
        options: written(known),
        not_here,
    };
    vec![
        program(&["ping"], "echo requests, printed as iputils prints them", ping::KNOWN, ping::NOT_HERE),
        program(
            &["iperf3"],
            "TCP and UDP, client and server, text and JSON",
            iperf3::KNOWN,
            iperf3::NOT_HERE,
        ),
        program(
            &["iperf", "iperf2"],
            "iperf 2.0.5: TCP and UDP, client and server",
            iperf::KNOWN,
            iperf::NOT_HERE,
        ),
        program(
            &["iperf 2.2"],
            "iperf 2.2.1, of a [host] with iperf = \"2.2\": text and CSV",
            iperf::v22::KNOWN,
            iperf::v22::NOT_HERE,
        ),
        program(&["scp", "pscp"], "copies a file of a host's `files`", scp::KNOWN, &[]),
        program(&["ssh", "putty", "plink"], "a session in which somebody types", session::SSH, &[]),
        program(&["telnet"], "the same, of a router's console too", session::TELNET, &[]),
        program(
            &["mtr"],
            "who is on the way, round after round: reports of mtr 0.95",
            mtr::KNOWN,
            mtr::NOT_HERE,
        ),
        program(
            &["tracepath", "tracepath4", "tracepath6"],
            "who is on the way, and how long a packet it takes, as iputils prints it",
            tracepath::KNOWN,
            &[],
        ),
        program(
            &["traceroute", "traceroute6"],
            "who is on the way, by UDP, ICMP and TCP, as traceroute 2.1.2 prints it",
            traceroute::KNOWN,
            traceroute::NOT_HERE,
        ),
    ]
}

/// A program's name, without its folder and what Windows adds.
fn name_of(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    name.trim_end_matches(".exe").to_owned()
}

/// Words that may stand before a program's name.
const BEFORE: [&str; 3] = ["sudo", "time", "nohup"];

/// Whether a command line is one of these programs and nothing else: no list, no pipe, no redirection, no variable.
pub(crate) fn is_program(line: &str) -> bool {
    let line = line.trim();
    let line = line.strip_suffix('&').filter(|l| !l.ends_with('&')).unwrap_or(line);
    let mut quote = None;
    let mut before = ' ';
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '$' | '`') => return false,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if before.is_whitespace() => break,
            (None, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '\n') => return false,
            (None, _) => {}
        }
        before = c;
    }
    let words = split(line).unwrap_or_default();
    let first = words.iter().find(|w| !BEFORE.contains(&w.as_str()));
    first.is_some_and(|first| has(first))
}

/// Whether a word is the name of one of these programs.
pub(crate) fn has(program: &str) -> bool {
    PROGRAMS.contains(&name_of(program).as_str())
}

/// Whether a word is iperf 2's name.
pub(crate) fn is_iperf2(program: &str) -> bool {
    matches!(name_of(program).as_str(), "iperf" | "iperf2")
}

/// Reads a command line and makes the program.
pub(crate) fn launch(line: &str, host: u32, net: &Net) -> Result<Box<dyn Program>, Failure> {
    launch_words(&split(line)?, host, net)
}

/// Makes the program of these words.
pub(crate) fn launch_words(words: &[String], host: u32, net: &Net) -> Result<Box<dyn Program>, Failure> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    while words.first().is_some_and(|w| BEFORE.contains(w)) {
        words.remove(0);
    }
    let Some((&program, args)) = words.split_first() else {
        return Err(Failure::new("", 0));
    };
    let machine = &net.machines[host as usize];
    Ok(match name_of(program).as_str() {
        "ping" => Box::new(ping::Ping::parse(args, machine.kernel)?),
        "iperf" | "iperf2" => iperf::parse(args, machine.kernel, machine.stack, machine.iperf)?,
        "iperf3" => iperf3::parse(args, machine.iperf)?,
        "scp" | "pscp" => Box::new(scp::Scp::parse(args, net)?),
        "ssh" => Box::new(session::Session::ssh(args, false)?),
        "putty" | "plink" => Box::new(session::Session::ssh(args, true)?),
        "mtr" => Box::new(mtr::Mtr::parse(args)?),
        name @ ("tracepath" | "tracepath4" | "tracepath6") => {
            Box::new(tracepath::Tracepath::parse(name, args)?)
        }
        name @ ("traceroute" | "traceroute6") => Box::new(traceroute::Traceroute::parse(name, args)?),
        "telnet" => Box::new(session::Session::telnet(args)?),
        _ => return Err(Failure::new(format!("bash: {program}: command not found\n"), 127)),
    })
}

/// Splits a command line into words as a shell does: blanks, quotes, backslashes.
fn split(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '&') if chars.as_str().trim().is_empty() => {}
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(q) = quote {
        let text = format!("bash: -c: line 1: unexpected EOF while looking for matching `{q}'\n");
        return Err(Failure::new(text, 2));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_program_and_what_a_script() {
        for line in [
            "ping -c 3 b",
            "sudo /bin/ping b",
            "iperf -s &",
            "'ping' 'a b'",
            "Iperf.exe -c b",
            "ping b # ; not",
        ] {
            assert!(is_program(line), "{line}");
        }
        for line in [
            "ping b; true",
            "ping b > log",
            "ping $B",
            "ping b | tail -1",
            "ping b && ping c",
            "tc qdisc",
            "",
            "(ping b)",
            "sleep 1\nping b",
            "x=1 ping b",
            "ping \"$B\"",
        ] {
            assert!(!is_program(line), "{line}");
        }
        for name in PROGRAMS {
            assert!(is_program(&format!("{name} x")), "{name}");
        }
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        let check = |line: &str, want: &[&str]| assert_eq!(split(line).unwrap(), want, "{line}");
        check("iperf -c  10.0.0.1 # x", &["iperf", "-c", "10.0.0.1"]);
        check("scp 'a b' \"c d\":./ e\\ f", &["scp", "a b", "c d:./", "e f"]);
        check("ping '' &", &["ping", ""]);
        check("", &[]);
        assert_eq!(split("ping 'x").unwrap_err().status, 2);
    }
}
