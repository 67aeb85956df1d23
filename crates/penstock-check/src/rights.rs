//! Containers of compose files and of Kubernetes whose commands change the network, and that nobody gives the right to it.

use crate::holders::yaml_commands;
use crate::yaml::is_text;

/// Blanks before a line's first word.
fn indent(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// Whether a line is a command of tc that changes something.
fn changes(line: &str) -> bool {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '[' | ']' | ';' | '&'))
        .filter(|w| !w.is_empty())
        .collect();
    words.windows(3).any(|w| {
        w[0].rsplit('/').next() == Some("tc")
            && matches!(w[1], "qdisc" | "class" | "filter")
            && matches!(w[2], "add" | "replace" | "change" | "del")
    })
}

/// Whether the lines of a container give it the right, or may do so in a way that is not read.
fn may(lines: &[&str]) -> bool {
    let code = |l: &&&str| !l.trim_start().starts_with('#');
    let gives = |l: &str| {
        [
            "NET_ADMIN",
            "privileged: true",
            "privileged: yes",
            "privileged: \"true\"",
            "<<:",
            "extends:",
            "{{",
            "*",
            "- ALL",
            "\"ALL\"",
        ]
        .iter()
        .any(|w| l.contains(w))
    };
    lines.iter().filter(code).any(|l| gives(l))
}

/// Blocks of lines that are one container each: below `services:`, and in the lists `containers` and `initContainers`.
fn containers(lines: &[&str]) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    let compose = lines.iter().position(|l| l.trim_end() == "services:");
    let blocks = |from: usize, of: usize, list: bool, all: &mut Vec<std::ops::Range<usize>>| {
        let inside = |l: &&str| {
            l.trim().is_empty()
                || l.trim_start().starts_with('#')
                || indent(l) > of
                || list && indent(l) == of && l.trim_start().starts_with("- ")
        };
        let end = from + 1 + lines[from + 1..].iter().take_while(|l| inside(l)).count();
        let Some(level) = lines[from + 1..end]
            .iter()
            .find(|l| !l.trim().is_empty() && !l.trim_start().starts_with('#'))
            .map(|l| indent(l))
        else {
            return;
        };
        let begins: Vec<usize> = (from + 1..end)
            .filter(|n| {
                let l = lines[*n];
                indent(l) == level
                    && !l.trim().is_empty()
                    && !l.trim_start().starts_with('#')
                    && l.trim_start().starts_with("- ") == list
            })
            .collect();
        for (at, begin) in begins.iter().enumerate() {
            all.push(*begin..begins.get(at + 1).copied().unwrap_or(end));
        }
    };
    if let Some(from) = compose {
        blocks(from, 0, false, &mut all);
        return all;
    }
    if !lines.iter().any(|l| l.trim_start().starts_with("apiVersion:")) {
        return all;
    }
    for (at, line) in lines.iter().enumerate() {
        let key = line.trim();
        if matches!(key, "containers:" | "initContainers:") {
            blocks(at, indent(line), true, &mut all);
        }
    }
    all
}

/// Lines, from 1, of commands that their container may not carry out, one for each container.
pub(crate) fn without(name: &str, text: &str) -> Vec<u32> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(commands) = yaml_commands(name, text) else { return Vec::new() };
    let read: Vec<&str> = commands.lines().collect();
    let of = |block: std::ops::Range<usize>| {
        let own = &lines[block.clone()];
        let at = block
            .clone()
            .find(|n| read.get(*n).is_some_and(|l| changes(l) || changes(&joined(&read, *n))))?;
        (!may(own)).then_some(at as u32 + 1)
    };
    containers(&lines).into_iter().filter_map(of).collect()
}

/// A command whose words stand in lines of their own.
fn joined(lines: &[&str], from: usize) -> String {
    let mut out = String::new();
    for line in &lines[from..lines.len().min(from + 8)] {
        out += line.trim_end_matches('\\');
        out.push(' ');
        if !line.ends_with('\\') || is_text(line.trim()) {
            break;
        }
    }
    // What begins with other words is no command of this line.
    let first = out.split_whitespace().next().unwrap_or("").trim_matches(['"', '\'']);
    if first.rsplit('/').next() == Some("tc") { out } else { String::new() }
}

/// Lines, from 1, of a shell script that let a container change its network which the script itself has begun without that right.
pub(crate) fn of_shell(text: &str) -> Vec<u32> {
    let lines: Vec<&str> = text.lines().collect();
    let mut begun: Vec<(String, bool)> = Vec::new();
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let first = at;
        let mut whole = String::new();
        while at < lines.len() {
            whole += lines[at].trim_end().trim_end_matches('\\');
            whole.push(' ');
            at += 1;
            if !lines[at - 1].trim_end().ends_with('\\') {
                break;
            }
        }
        if whole.trim_start().starts_with('#') {
            continue;
        }
        let words: Vec<&str> = whole.split_whitespace().collect();
        let program = |w: &[&str], verb: &str| {
            matches!(w[0].rsplit('/').next(), Some("docker" | "podman")) && w[1] == verb
        };
        let given = words.windows(2).any(|w| {
            w[0].contains("NET_ADMIN")
                || w[1].contains("NET_ADMIN")
                || w.contains(&"--privileged")
                || w[0] == "--cap-add" && w[1] == "ALL"
                || w[0] == "--cap-add=ALL"
        });
        // Options that a variable may hold.
        let held = words.iter().any(|w| {
            let name = w.to_ascii_uppercase();
            name.contains('$')
                && ["OPT", "ARG", "CAP", "FLAG", "PRIV", "@", "EXTRA"].iter().any(|p| name.contains(p))
        });
        let clean = |w: &str| w.trim_matches(['"', '\'']).to_owned();
        if words.windows(2).any(|w| program(w, "run") || program(w, "create")) {
            let name = words.windows(2).find(|w| w[0] == "--name").map(|w| w[1]);
            let name = name.or_else(|| words.iter().find_map(|w| w.strip_prefix("--name=")));
            begun.extend(name.map(|n| (clean(n), given || held)));
            if changes(&whole) && !given && !held {
                out.push(first as u32 + 1);
            }
        } else if let Some(exec) = words.windows(2).position(|w| program(w, "exec")) {
            let rest: Vec<String> = words[exec + 2..].iter().map(|w| clean(w)).collect();
            let of = rest.iter().find_map(|w| begun.iter().rev().find(|b| b.0 == *w));
            if of.is_some_and(|b| !b.1) && !given && changes(&whole) {
                out.push(first as u32 + 1);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_that_a_script_begins() {
        let text = "docker run -d --name web nginx\ndocker run -d --name=b \\\n  --cap-add NET_ADMIN x\ndocker exec web tc qdisc add dev eth0 root fq\n\
                    docker exec b tc qdisc add dev eth0 root fq\ndocker exec --privileged web tc qdisc del dev eth0 root\ndocker exec c tc qdisc add dev eth0 root fq\n\
                    docker exec web tc qdisc show\ndocker run --rm x tc qdisc add dev eth0 root fq\n";
        assert_eq!(of_shell(text), [4, 9]);
        assert_eq!(of_shell(&text.replace("nginx", "$DOCKER_OPTS nginx")), [9]);
    }

    #[test]
    fn each_container_has_its_own_rights() {
        let compose = "services:\n  a:\n    command: tc qdisc add dev eth0 root fq\n    cap_add: [NET_ADMIN]\n  b:\n    command: tc qdisc add dev eth0 root fq\n  c:\n    command: tc qdisc show\n";
        assert_eq!(without("compose.yml", compose), [6]);
        let words = "services:\n  a:\n    command:\n      - tc\n      - qdisc\n      - add\n";
        assert_eq!(without("compose.yml", words), [4]);
        let pod = "apiVersion: v1\nspec:\n  initContainers:\n  - name: x\n    securityContext: {privileged: true}\n    command: [sh, -c, \"tc qdisc add dev eth0 root fq\"]\n\
                   \x20 containers:\n  - name: y\n    command: [sh, -c, \"tc qdisc add dev eth0 root fq\"]\n  - name: z\n    command: [sleep, inf]\n";
        assert_eq!(without("pod.yaml", pod), [9]);
        // What a template fills in may be the right; a workflow has no containers.
        assert_eq!(without("pod.yaml", &pod.replace("- name: y", "- name: {{ y }}")), [] as [u32; 0]);
        assert_eq!(
            without("w.yml", "jobs:\n  a:\n    steps:\n    - run: tc qdisc add dev lo root fq\n"),
            [] as [u32; 0]
        );
    }
}
