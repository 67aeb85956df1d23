//! Commands that are carried out elsewhere: in another network namespace, or in a container, which has one of its own.
//!
//! `ip netns exec NAME tc …` is tc's command in the namespace NAME. What stands behind `docker exec`, `nsenter`, `ssh` and
//! their like is read in the same way; the namespace then has the container's or the machine's name.

use penstock_host::Program;

/// What is carried out, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// The namespace's name.
    pub place: String,
    /// Whether it is one that `ip netns` knows; the others are containers' and other machines'.
    pub is_space: bool,
    /// What leads there, as it would be typed before a command.
    pub prefix: String,
    /// The commands in their order.
    pub commands: Vec<Inner>,
}

/// One of them, word by word, and when it is carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inner {
    /// Its words; none for a program that does nothing to networks and ends well.
    pub words: Vec<String>,
    /// By how the one before it has ended.
    pub after: After,
}

/// How the command before has to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// In any way: `;`.
    Any,
    /// Well: `&&`.
    Success,
    /// Badly: `||`.
    Failure,
}

/// Programs that carry out what stands behind them, and where the name stands.
enum Kind {
    /// Behind the options: the name, then the command.
    Named,
    /// Behind the options: the command.
    Unnamed,
}

/// Wrappers by their first words, with the options that take a value.
const WRAPPERS: [(&[&str], Kind, &[&str]); 12] = [
    (&["docker", "compose", "exec"], Kind::Named, DOCKER),
    (&["docker-compose", "exec"], Kind::Named, DOCKER),
    (&["docker", "exec"], Kind::Named, DOCKER),
    (&["docker", "container", "exec"], Kind::Named, DOCKER),
    (&["podman", "exec"], Kind::Named, DOCKER),
    (&["nerdctl", "exec"], Kind::Named, DOCKER),
    (&["kubectl", "exec"], Kind::Named, &["-n", "--namespace", "-c", "--container"]),
    (&["lxc", "exec"], Kind::Named, &["--env", "--user", "--group", "--cwd"]),
    (&["incus", "exec"], Kind::Named, &["--env", "--user", "--group", "--cwd"]),
    (&["lxc-attach"], Kind::Unnamed, &["-n", "--name"]),
    (&["nsenter"], Kind::Unnamed, &["-t", "--target", "-S", "-G"]),
    (&["ssh"], Kind::Named, &["-p", "-i", "-l", "-o", "-F", "-J"]),
];
const DOCKER: &[&str] = &["-u", "--user", "-e", "--env", "-w", "--workdir", "--env-file", "--index"];

/// What the words ask for in another place; `None` for a command of this one, and for what cannot be read.
pub fn elsewhere(words: &[String]) -> Option<Elsewhere> {
    let program = base(words.first()?);
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    if let "ip" | "tc" = program {
        let space = ["-n", "-netns"].contains(&word(1)) || program == "tc" && word(1) == "-net";
        if space && words.len() > 3 {
            let mut inner = vec![words[0].clone()];
            inner.extend_from_slice(&words[3..]);
            return named(&words[2], true, format!("ip netns exec {}", words[2]), &inner);
        }
        if program == "ip" && word(1) == "netns" && word(2) == "exec" && words.len() > 4 {
            return named(&words[3], true, format!("ip netns exec {}", words[3]), &words[4..]);
        }
        return None;
    }
    let begins = |first: &[&str]| {
        base(word(0)) == first[0] && first.iter().enumerate().skip(1).all(|(at, f)| word(at) == *f)
    };
    let (first, kind, valued) = WRAPPERS.iter().find(|w| begins(w.0))?;
    let mut at = first.len();
    let mut target = String::new();
    while word(at).starts_with('-') && word(at) != "--" {
        let takes = valued.contains(&word(at));
        if takes {
            target = word(at + 1).to_owned();
        } else if let Some((_, value)) = word(at).split_once('=') {
            target = value.to_owned();
        }
        at += 1 + usize::from(takes);
    }
    if matches!(kind, Kind::Named) {
        target = word(at).to_owned();
        at += 1;
    }
    // kubectl's options may stand behind the name.
    while word(at).starts_with('-') && word(at) != "--" {
        at += 1 + usize::from(valued.contains(&word(at)));
    }
    at += usize::from(word(at) == "--");
    named(&format!("{}:{target}", first[0]), false, words[..at.min(words.len())].join(" "), words.get(at..)?)
}

fn named(place: &str, is_space: bool, prefix: String, inner: &[String]) -> Option<Elsewhere> {
    let mut inner = inner;
    while inner.first().is_some_and(|w| base(w) == "sudo") {
        inner = &inner[1..];
    }
    let commands = match inner {
        [shell, flag, text, ..] if matches!(base(shell), "sh" | "bash" | "ash") && flag.ends_with('c') => {
            plain(text)?
        }
        [text] if text.contains(' ') => plain(text)?,
        _ => vec![Inner { words: inner.to_vec(), after: After::Any }],
    };
    let known = |c: &Inner| c.words.first().is_none_or(|w| Program::is_of_scripts(base(w)));
    let any = commands.iter().any(|c| !c.words.is_empty());
    let simple = !place.is_empty() && !place.contains(['/', ' ']);
    (simple && any && commands.iter().all(known)).then(|| Elsewhere {
        place: place.to_owned(),
        is_space,
        prefix,
        commands,
    })
}

/// The commands of a text for another shell, where it is nothing but words in quotes or without, and output that is thrown away.
fn plain(text: &str) -> Option<Vec<Inner>> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut after = After::Any;
    // What stands behind `>`.
    let mut to = false;
    let mut rest = text.chars().peekable();
    loop {
        let c = rest.next();
        let ends = match c {
            None | Some(';' | '\n') => Some(After::Any),
            Some('&') if word.as_deref() != Some(">") && rest.peek() != Some(&'>') => {
                Some(if rest.next_if_eq(&'&').is_some() { After::Success } else { After::Any })
            }
            Some('|') if rest.next_if_eq(&'|').is_some() => Some(After::Failure),
            _ => None,
        };
        if ends.is_some() || matches!(c, Some(' ' | '\t' | '>')) {
            match word.take() {
                Some(_) if to => to = false,
                // The number of what is redirected: `2>`.
                Some(number) if c == Some('>') && number.bytes().all(|b| b.is_ascii_digit()) => {}
                Some(whole) => words.push(whole),
                None => {}
            }
        }
        if let Some(next) = ends {
            let mut given = std::mem::take(&mut words);
            while given.first().is_some_and(|w| base(w) == "sudo") {
                let options = given[1..].iter().take_while(|w| w.starts_with('-')).count();
                given.drain(..=options);
            }
            if let Some(first) = given.first() {
                let quiet =
                    matches!(first.as_str(), "true" | ":" | "echo" | "sleep" | "set" | "printf" | "logger");
                all.push(Inner { words: if quiet { Vec::new() } else { given }, after });
            }
            after = next;
            if c.is_none() {
                return (!to).then_some(all);
            }
            continue;
        }
        match c? {
            ' ' | '\t' => {}
            '>' => {
                rest.next_if_eq(&'>');
                rest.next_if_eq(&'&');
                to = true;
            }
            '&' => {}
            quote @ ('"' | '\'') => {
                let inner = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        c if c == quote => break,
                        '$' | '`' | '\\' if quote == '"' => return None,
                        c => inner.push(c),
                    }
                }
            }
            c if c.is_alphanumeric() || ".:/_-+,@%=!".contains(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, Vec<String>)> {
        let words: Vec<String> = line
            .split('|')
            .flat_map(|part| match part.starts_with(' ') {
                true => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
                false => vec![part.to_owned()],
            })
            .collect();
        elsewhere(&words).map(|e| (e.place, e.commands.iter().map(|c| c.words.join(" ")).collect()))
    }

    #[test]
    fn a_command_is_found_behind_what_carries_it_out() {
        let is = |line: &str, place: &str, commands: &[&str]| {
            let commands = commands.iter().map(ToString::to_string).collect();
            assert_eq!(read(line), Some((place.to_owned(), commands)), "{line}");
        };
        is(" ip netns exec a tc qdisc show", "a", &["tc qdisc show"]);
        is(" /sbin/ip netns exec a sudo tc qdisc show", "a", &["tc qdisc show"]);
        is(" ip -n a link set v up", "a", &["ip link set v up"]);
        is(" tc -n a qdisc show", "a", &["tc qdisc show"]);
        is(" docker exec -it -u root box tc qdisc show", "docker:box", &["tc qdisc show"]);
        is(
            " docker exec --privileged box bash -c|tc qdisc show; ip link",
            "docker:box",
            &["tc qdisc show", "ip link"],
        );
        is(" nsenter -t 12 -n tc qdisc show", "nsenter:12", &["tc qdisc show"]);
        is(" kubectl exec -n x pod -c web -- tc qdisc show", "kubectl:pod", &["tc qdisc show"]);
        is(" lxc-attach -n box -- tc qdisc show", "lxc-attach:box", &["tc qdisc show"]);
        is(" ssh -p 22 root@h|tc qdisc show && ip link", "ssh:root@h", &["tc qdisc show", "ip link"]);
    }

    #[test]
    fn what_another_shell_is_given_is_taken_apart_with_its_ends() {
        let told = |text: &str| {
            let one = |c: Inner| format!("{:?} {}", c.after, c.words.join(" "));
            plain(text).map(|all| all.into_iter().map(one).collect::<Vec<_>>())
        };
        let is = |text: &str, want: &[&str]| {
            assert_eq!(told(text), Some(want.iter().map(ToString::to_string).collect()), "{text}");
        };
        is(
            "tc qdisc del dev a root 2>/dev/null; sudo tc qdisc add dev a root sfq",
            &["Any tc qdisc del dev a root", "Any tc qdisc add dev a root sfq"],
        );
        is("tc a >/dev/null 2>&1 || true && ip b", &["Any tc a", "Failure ", "Success ip b"]);
        is("tc a \"b c\" 'd$' &>/dev/null", &["Any tc a b c d$"]);
        is("tc a 10 > x; sudo -n tc b", &["Any tc a 10", "Any tc b"]);
        for text in [
            "tc $A",
            "tc a | grep b",
            "tc a < f",
            "tc \"$A\"",
            "tc a >",
            "for a in b; do tc c; done (",
            "tc 'a",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_carried_out_here_is_left_alone() {
        for line in [
            " tc qdisc show",
            " ip netns add a",
            " ip netns exec a ping h",
            " docker run -it box tc qdisc show",
            " ip netns exec a sh -c|tc qdisc add dev $D root sfq",
            " ssh h",
            " tc -name qdisc show",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
