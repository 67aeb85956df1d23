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
    /// The commands, word by word, in their order. One fails: those behind it are not reached.
    pub commands: Vec<Vec<String>>,
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
        _ => vec![inner.to_vec()],
    };
    let known = |c: &Vec<String>| c.first().is_some_and(|w| Program::is_of_scripts(base(w)));
    let simple = !place.is_empty() && !place.contains(['/', ' ']);
    (simple && !commands.is_empty() && commands.iter().all(known)).then(|| Elsewhere {
        place: place.to_owned(),
        is_space,
        prefix,
        commands,
    })
}

/// The commands of a text for another shell, where it is nothing but words.
fn plain(text: &str) -> Option<Vec<Vec<String>>> {
    let usual = |c: char| c.is_alphanumeric() || " \n.:/_-+,@%=;&".contains(c);
    if !text.chars().all(usual) {
        return None;
    }
    let commands =
        text.split([';', '\n', '&']).map(|c| c.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    Some(
        commands
            .filter(|c| !c.is_empty())
            .map(|c| if c[0] == "sudo" { c[1..].to_vec() } else { c })
            .collect(),
    )
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
        elsewhere(&words).map(|e| (e.place, e.commands.iter().map(|c| c.join(" ")).collect()))
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
