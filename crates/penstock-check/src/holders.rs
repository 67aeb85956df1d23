//! Files that hold commands among other things: systemd units, Dockerfiles, YAML of workflows, compose files and Ansible, Markdown; and files for `nft -f`.
//!
//! Others are in [`embedded`]. What is no command becomes blanks, character by character: what is found stands where it stands in the file.

use crate::documents::{files_of_yaml, with_entrypoints};
use crate::embedded;
use crate::templates::{
    given_in_yaml, is_given_to_shell, template_of, with_given, with_values, without_templates,
};
use crate::yaml::{UNSHELLED, is_ansible_or_compose, words_of_list, yaml, yaml_of};

/// What kind of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Unit,
    Docker,
    Yaml,
    Markdown,
    Rst,
    Nft,
    Saved,
    More(embedded::Kind),
}

/// By the file's name, and for units by what is in it.
fn kind(name: &str, text: &str) -> Option<Kind> {
    let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    // A template of such a file has its name with an ending more.
    let file = template_of(&file).unwrap_or(&file).to_owned();
    let suffix = file.rsplit_once('.').map_or("", |s| s.1);
    // `#!/usr/sbin/nft -f`, as in /etc/nftables.conf.
    let first = text.lines().next().unwrap_or("");
    if first.starts_with("#!") && first.split(['/', ' ', '\t']).any(|w| w.trim() == "nft") {
        return Some(Kind::Nft);
    }
    if is_saved(text) {
        return Some(Kind::Saved);
    }
    if let Some(more) = embedded::kind(&file, text) {
        return Some(Kind::More(more));
    }
    match suffix {
        _ if first.trim_end() == "#cloud-config" => Some(Kind::Yaml),
        "nft" if !first.starts_with("#!") => Some(Kind::Nft),
        "conf" | "rules" | "ruleset" if is_of_nft(text) => Some(Kind::Nft),
        "service" | "timer" | "socket" | "mount" | "path" | "target" => Some(Kind::Unit),
        "conf" if text.lines().any(|l| l.trim() == "[Service]") => Some(Kind::Unit),
        "md" | "markdown" => Some(Kind::Markdown),
        "rst" => Some(Kind::Rst),
        "yml" | "yaml" => Some(Kind::Yaml),
        // `Dockerfile.dev`, `client.dockerfile`, `relay-Dockerfile`.
        _ if (file.contains("dockerfile") || file.contains("containerfile")) && is_dockerfile(text) => {
            Some(Kind::Docker)
        }
        _ => None,
    }
}

/// Whether a line of it begins a table of nft: `table inet NAME {`.
fn is_of_nft(text: &str) -> bool {
    let families = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];
    text.lines().any(|l| {
        let words: Vec<&str> = l.split_whitespace().take(4).collect();
        matches!(words.as_slice(), ["table", family, _, "{"] if families.contains(family))
    })
}

/// Whether it is a file as `iptables-save` writes it: the name of a table first, and `COMMIT`.
fn is_saved(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let tables = ["*filter", "*nat", "*mangle", "*raw", "*security"];
    lines.next().is_some_and(|l| tables.contains(&l))
        && lines.all(|l| l == "COMMIT" || l.starts_with([':', '-', '[', '*']))
}

/// Whether the first word that is no comment is one a Dockerfile begins with.
fn is_dockerfile(text: &str) -> bool {
    let first =
        text.lines().map(str::trim_start).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or("");
    let word = first.split_whitespace().next().unwrap_or("").to_uppercase();
    matches!(word.as_str(), "FROM" | "ARG" | "RUN" | "CMD" | "ENTRYPOINT" | "ENV" | "COPY" | "ADD" | "LABEL")
}

/// The scripts in a file that is none itself, each with the file's own lines and columns; `None` for a file that is a script. Blocks of
/// Markdown are each for themselves, and so is what a unit does when it stops.
pub(crate) fn scripts(name: &str, text: &str) -> Option<Vec<String>> {
    let lines: Vec<&str> = text.lines().map(|l| l.trim_end_matches('\r')).collect();
    Some(match kind(name, text)? {
        Kind::Unit => unit(&lines),
        Kind::Docker => vec![docker(&lines)],
        Kind::Yaml => {
            let compose = lines.iter().any(|l| l.trim_end() == "services:");
            let given = given_in_yaml(&lines);
            let filled = |l: &str| without_templates(&with_given(l, &given));
            let one = |l: &&str| if compose { dollars(&filled(l)) } else { filled(l) };
            let lines: Vec<String> = lines.iter().map(one).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let commands = if compose { with_entrypoints(&lines, &yaml(&lines)) } else { yaml(&lines) };
            std::iter::once(commands)
                .chain(files_of_yaml(&lines))
                .map(|text| with_values(text, &given))
                .collect()
        }
        Kind::Markdown => markdown(&lines),
        Kind::Rst => crate::recipes::rst(&lines),
        Kind::Nft => vec![nft(&lines)],
        Kind::Saved => vec![saved(name, &lines)],
        Kind::More(more) => embedded::scripts(more, &lines),
    })
}

/// Whether it is a unit of systemd.
pub(crate) fn is_unit(name: &str, text: &str) -> bool {
    kind(name, text) == Some(Kind::Unit)
}

/// Whether it is a crontab(5).
pub(crate) fn is_crontab(name: &str, text: &str) -> bool {
    kind(name, text) == Some(Kind::More(embedded::Kind::Cron))
}

/// Whether the lines of what [`scripts`] makes of it stand one lower than its own, from the second on: a saved table whose first chain does not take everything.
pub(crate) fn is_lower(name: &str, text: &str) -> bool {
    let second = text.lines().nth(1).unwrap_or("");
    let begins = text.lines().next().is_some_and(|l| l.starts_with('*'));
    kind(name, text) == Some(Kind::Saved) && begins && !is_open(second)
}

/// Whether it is a Dockerfile.
pub(crate) fn is_dockerfile_by(name: &str, text: &str) -> bool {
    kind(name, text) == Some(Kind::Docker)
}

/// The commands of a file of YAML, in its own lines.
pub(crate) fn yaml_commands(name: &str, text: &str) -> Option<String> {
    (kind(name, text) == Some(Kind::Yaml)).then(|| yaml(&text.lines().collect::<Vec<_>>()))
}

/// `$$` of a compose file is `$` of the shell. What stands behind a blank or a quote keeps its place.
fn dollars(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("$$") {
        out += &rest[..at];
        out += if out.ends_with([' ', '"', '\'']) { " $" } else { "$" };
        rest = &rest[at + 2..];
    }
    out + rest
}

/// Commands that a file speaks of and that stand where nothing of it is read: a language, a key of YAML, a prefix that is not known.
pub(crate) fn unread(name: &str, text: &str, scripts: &[String]) -> Vec<crate::coverage::Missed> {
    let why = match kind(name, text) {
        None
        | Some(Kind::Nft | Kind::Saved | Kind::Markdown | Kind::Rst | Kind::More(embedded::Kind::OpenRc)) => {
            return Vec::new();
        }
        Some(Kind::More(embedded::Kind::Networkd)) => return embedded::unread_sections(text),
        Some(Kind::More(embedded::Kind::Other)) => "this language is not read",
        Some(Kind::Yaml) => "its key is not known to hold commands",
        _ => "this line is not known to hold a command",
    };
    embedded::unread(text, scripts, why)
}

/// Blanks for so many characters of a line, and the rest as it is.
pub(crate) fn from(line: &str, characters: usize) -> String {
    let rest: String = line.chars().skip(characters).collect();
    format!("{}{rest}", " ".repeat(characters))
}

pub(crate) fn joined(lines: Vec<String>) -> String {
    lines.into_iter().map(|l| l + "\n").collect()
}

/// What stands for the `%` of a specifier: a device's name may have it in it, and the kernel takes no `%` there.
const SPECIFIER: char = '@';

/// A line of a unit with something as long in the place of specifiers (`%i`); `%%` is a per cent sign.
fn specifiers(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match rest.peek() {
            Some('%') if c == '%' => {
                out.push('%');
                rest.next();
            }
            Some(next) if c == '%' && next.is_ascii_alphabetic() => out.push(SPECIFIER),
            _ => out.push(c),
        }
    }
    out
}

/// What is said of such a file's commands, with the specifiers that the file has.
pub(crate) fn with_specifiers(said: &str, text: &str) -> String {
    let mut out = String::new();
    let mut rest = said.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().filter(|n| c == SPECIFIER && n.is_ascii_alphabetic());
        out.push(if next.is_some_and(|n| text.contains(&format!("%{n}"))) { '%' } else { c });
    }
    out
}

/// `ExecStart=`, `ExecStartPre=`, …: systemd takes no shell, but `%` and prefixes of its own.
pub(crate) fn unit(lines: &[&str]) -> Vec<String> {
    let of = |wanted: &dyn Fn(&str) -> bool| {
        let mut out = Vec::new();
        let mut goes_on = false;
        for line in lines {
            if line.trim() == "[Service]" && lines.iter().any(|l| l.trim_start().starts_with("Environment="))
            {
                // What is set is set for what a shell carries out as well.
                out.push("set -a".to_owned());
                continue;
            }
            let variables = line.trim_start().strip_prefix("Environment=").filter(|_| !goes_on);
            if let Some(variables) = variables.map(|v| v.replace('"', " ")) {
                let all_set =
                    variables.split_whitespace().all(|w| w.contains('=') && !w.contains(['$', '`', '%']));
                let place = line.chars().count() - variables.chars().count();
                out.push(if all_set { format!("{}{variables}", " ".repeat(place)) } else { String::new() });
                continue;
            }
            let taken = match line.split_once('=') {
                _ if goes_on => Some(0),
                Some((key, value)) if wanted(key.trim()) => {
                    let prefix = value.chars().take_while(|c| "-@:+!| ".contains(*c)).count();
                    Some(line.chars().count() - value.chars().count() + prefix)
                }
                _ => None,
            };
            let text = taken.map(|n| specifiers(&from(line, n)));
            goes_on = text.as_deref().is_some_and(|t| t.trim_end().ends_with('\\'));
            out.push(text.unwrap_or_default());
        }
        joined(out)
    };
    let start = |key: &str| key.starts_with("Exec") && !key.starts_with("ExecStop") && key != "ExecReload";
    let stop = |key: &str| key.starts_with("ExecStop");
    vec![of(&start), of(&stop)]
}

/// A file for `nft -f`, as the here-document of a command that takes the place of its first line. A first line that is no comment goes
/// to the beginning of the second.
fn nft(lines: &[&str]) -> String {
    let mut out = vec![format!("nft -f - <<'{NFT_END}'")];
    // What firewall4 of OpenWrt takes into its table: chains, sets and maps without one around them.
    let bare = |l: &&str| {
        let mut words = l.split_whitespace();
        let object = matches!(words.next(), Some("chain" | "set" | "map"));
        let name = words.next().unwrap_or("");
        object && (name.ends_with('{') || words.next() == Some("{"))
    };
    let inner = lines.iter().find(|l| bare(l) || l.trim_start().starts_with("table ")).is_some_and(bare);
    let comment = |l: &&&str| l.trim().is_empty() || l.trim_start().starts_with('#');
    let mut before = if inner { "table inet fw4 { ".to_owned() } else { String::new() };
    if let Some(first) = lines.first().filter(|l| !comment(l)) {
        before += &format!("{first} ; ");
    }
    for line in lines.iter().skip(1) {
        out.push(std::mem::take(&mut before) + line);
    }
    if !before.is_empty() {
        out.push(before);
    }
    out.extend(inner.then(|| "}".to_owned()));
    out.push(NFT_END.to_owned());
    joined(out)
}

/// A saved file, as the here-document of a command that takes the place of its first line. Where that is the table's, the table takes the place of the next, which
/// is what `iptables-save` writes of a chain that takes everything.
fn saved(name: &str, lines: &[&str]) -> String {
    let six = lines.iter().any(|l| l.starts_with('#') && l.contains("ip6tables") || l.contains("icmpv6"))
        || name.rsplit('/').next().is_some_and(|file| file.contains("v6") || file.contains("ip6"));
    let program = if six { "ip6tables-restore" } else { "iptables-restore" };
    let mut out = vec![format!("{program} <<'{NFT_END}'")];
    out.extend(lines.iter().skip(1).map(|l| (*l).to_owned()));
    if let (Some(first), Some(second)) = (lines.first().filter(|l| l.starts_with('*')), out.get_mut(1)) {
        *second = if is_open(second) { (*first).to_owned() } else { format!("{first}\n{second}") };
    }
    out.push(NFT_END.to_owned());
    joined(out)
}

/// Whether a line names a chain of the kernel's that takes everything.
fn is_open(line: &str) -> bool {
    line.starts_with(':') && line.contains(" ACCEPT")
}

/// Ends the rules of such a file.
const NFT_END: &str = "END OF THE RULES";

/// `RUN`, `CMD` and `ENTRYPOINT` of a Dockerfile, in the form of a shell.
fn docker(lines: &[&str]) -> String {
    let mut out = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let trimmed = line.trim_start();
        let word = trimmed.split_whitespace().next().unwrap_or("").to_uppercase();
        let taken = match word.as_str() {
            _ if goes_on => Some(0),
            "FROM" if lines.iter().any(|l| l.starts_with("ENV ") || l.starts_with("ARG ")) => {
                // What is set is set for what a shell carries out as well.
                out.push("set -a".to_owned());
                continue;
            }
            "ENV" | "ARG" if trimmed.split_whitespace().nth(1).is_some_and(|w| w.contains('=')) => {
                Some(line[..line.len() - trimmed.len() + word.len()].chars().count())
            }
            "RUN" | "CMD" | "ENTRYPOINT" => {
                let mut at = line.len() - trimmed.len() + word.len();
                // `RUN --mount=… command`
                while line[at..].trim_start().starts_with("--") {
                    let rest = line[at..].trim_start();
                    at = line.len() - rest.len() + rest.find(' ').unwrap_or(rest.len());
                }
                Some(line[..at].chars().count())
            }
            _ => None,
        };
        // A comment within a command is left out.
        let comment = goes_on && trimmed.starts_with('#');
        let text = taken.filter(|_| !comment).map(|n| from(line, n));
        // `["sh", "-c", "…"]`: words with nothing between them.
        let text = text.map(|t| if t.trim_start().starts_with('[') { words_of_list(&t) } else { t });
        goes_on = comment || text.as_deref().is_some_and(|t| t.trim_end().ends_with('\\'));
        out.push(if comment { "\\".to_owned() } else { text.unwrap_or_default() });
    }
    joined(out)
}

/// What only a shell understands, in commands that none reads: line, column, length, the word. Units of systemd, Ansible's `command`, the
/// `command` of compose files.
pub(crate) fn unshelled(name: &str, text: &str) -> Vec<(u32, u32, u32, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let read = match kind(name, text) {
        Some(Kind::Unit) => unit(&lines),
        // Elsewhere (CircleCI's `run`, Taskfiles) a shell reads a `command`.
        Some(Kind::Yaml) if lines.iter().any(|l| is_ansible_or_compose(l)) => {
            vec![yaml_of(&lines, &UNSHELLED)]
        }
        _ => return Vec::new(),
    };
    let mut out = Vec::new();
    for (number, line) in read.iter().flat_map(|t| t.lines().enumerate()) {
        // What is a shell's own script may say all of it.
        let first = line.split_whitespace().next().unwrap_or("");
        let base = first.rsplit('/').next().unwrap_or(first);
        let commands = is_command(line) || line.split(" | ").skip(1).any(|l| is_command(l.trim_start()));
        if !commands
            || matches!(base, "sh" | "bash" | "dash" | "ash" | "env")
            || is_given_to_shell(&lines, number, &UNSHELLED)
        {
            continue;
        }
        let word = line.split_whitespace().find(|w| {
            matches!(*w, "|" | "||" | "&&" | ">" | ">>" | "2>" | "&" | "<")
                || ["2>/dev/null", ">/dev/null", "2>&1", "&>/dev/null"].contains(w)
                || w.starts_with("$(")
                || w.starts_with('`')
        });
        if let Some(word) = word
            && let Some(at) = line.find(word)
        {
            let column = line[..at].chars().count() as u32 + 1;
            out.push((number as u32 + 1, column, word.chars().count() as u32, word.to_owned()));
        }
    }
    out
}

/// Names in a Makefile's recipes that make reads by their first letter alone.
pub(crate) fn bare_names(name: &str, text: &str) -> Vec<(u32, u32, String)> {
    match kind(name, text) {
        Some(Kind::More(embedded::Kind::Make)) => embedded::bare_names(text),
        _ => Vec::new(),
    }
}

/// Commands of YAML that are one word.
pub(crate) fn one_word(name: &str, text: &str) -> Vec<(u32, u32, u32)> {
    match kind(name, text) {
        Some(Kind::Yaml) => crate::yaml::one_word(&text.lines().collect::<Vec<_>>()),
        Some(Kind::Docker) => {
            let keyed = |l: &str| match l.split_once(char::is_whitespace) {
                Some(("ENTRYPOINT" | "CMD", list)) => format!("command: {}", list.trim_start()),
                _ => String::new(),
            };
            let lines: Vec<String> = text.lines().map(keyed).collect();
            let found = crate::yaml::one_word(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            // What stands in front there is longer or shorter here.
            let column = |(line, _, len): (u32, u32, u32)| {
                let at = text.lines().nth(line as usize - 1).and_then(|l| l.find(['"', '\'']));
                (line, at.map_or(0, |at| at as u32 + 2), len)
            };
            found.into_iter().map(column).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a file has recipes, of which each is called for itself.
pub(crate) fn has_recipes(name: &str, text: &str) -> bool {
    matches!(kind(name, text), Some(Kind::More(embedded::Kind::Make | embedded::Kind::Just)))
}

/// Whether a file is a script as a whole.
pub(crate) fn is_script(name: &str, text: &str) -> bool {
    kind(name, text).is_none()
}

/// Blocks between fences that say they are a shell's, or that say nothing and begin with a command; of a console what stands behind the prompt.
fn markdown(lines: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    let mut open: Option<(String, Vec<String>, bool)> = None;
    for (n, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let fence: String = trimmed.chars().take_while(|c| *c == '`' || *c == '~').collect();
        match &mut open {
            Some((mark, block, wanted)) => {
                if fence.len() >= mark.len()
                    && fence.starts_with(mark.as_str())
                    && trimmed.trim_end() == fence
                {
                    if *wanted {
                        all.push(joined(std::mem::take(block)));
                    }
                    open = None;
                    continue;
                }
                block.push((*line).to_owned());
            }
            None if fence.len() >= 3 => {
                let word =
                    trimmed[fence.len()..].trim().split([' ', '{', ',']).next().unwrap_or("").to_lowercase();
                let first = lines.get(n + 1).map_or("", |l| l.trim_start());
                let begins = ["tc ", "$ ", "# tc", "iptables ", "ip ", "sudo ", "#!"]
                    .iter()
                    .any(|w| first.starts_with(w));
                let wanted = matches!(
                    word.as_str(),
                    "sh" | "bash" | "shell" | "console" | "shell-session" | "zsh" | "shellsession"
                ) || word.is_empty() && begins;
                open = Some((fence, vec![String::new(); n + 1], wanted));
            }
            None => {}
        }
    }
    // Blocks by indentation: four blanks, behind an empty line, that begin with a command.
    let mut fenced = false;
    let mut block: Option<Vec<String>> = None;
    for (n, line) in lines.iter().enumerate() {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= fence;
        let indented = (line.starts_with("    ") || line.starts_with('\t')) && !fenced;
        let text = line.trim_start().trim_start_matches("$ ").trim_start_matches("# ");
        match &mut block {
            Some(lines) if indented || line.trim().is_empty() => lines.push((*line).to_owned()),
            Some(_) => all.extend(block.take().map(joined)),
            None if indented && is_command(text) && n > 0 && lines[n - 1].trim().is_empty() => {
                let mut begun = vec![String::new(); n];
                begun.push((*line).to_owned());
                block = Some(begun);
            }
            None => {}
        }
    }
    all.extend(block.take().map(joined));
    all.into_iter().map(transcript).collect()
}

/// Of a transcript only the commands: what stands behind a prompt, where there is one.
pub(crate) fn transcript(text: String) -> String {
    let prompts = text
        .lines()
        .any(|l| ["$ ", "# "].iter().any(|p| l.trim_start().strip_prefix(p).is_some_and(is_command)));
    if !prompts {
        return text;
    }
    let line = |l: &str| {
        let indent = l.chars().take_while(|c| *c == ' ').count();
        let rest = l.trim_start();
        let command = ["$ ", "# "].iter().any(|p| rest.starts_with(p));
        if command { from(l, indent + 2) } else { String::new() }
    };
    joined(text.lines().map(line).collect())
}

/// Whether a line begins with a network command.
pub(crate) fn is_command(line: &str) -> bool {
    let first = line.trim_start().trim_start_matches("sudo ").split_whitespace().next().unwrap_or("");
    penstock_host::Program::is_of_scripts(first.rsplit('/').next().unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, want: &[&[&str]]) {
        let got = scripts(name, text).unwrap();
        let got: Vec<Vec<&str>> = got.iter().map(|t| t.lines().map(str::trim_end).collect()).collect();
        assert_eq!(got, want, "{name}");
    }

    #[test]
    fn commands_stay_where_they_stand() {
        check(
            "a.service",
            "[Service]\nExecStartPre=-/sbin/tc qdisc del dev eth0 root\nExecStart=/sbin/tc qdisc add dev eth0 \\\n  root sfq\nExecStop=/sbin/tc qdisc del dev eth0 root\n",
            &[
                &[
                    "",
                    "              /sbin/tc qdisc del dev eth0 root",
                    "          /sbin/tc qdisc add dev eth0 \\",
                    "  root sfq",
                    "",
                ],
                &["", "", "", "", "         /sbin/tc qdisc del dev eth0 root"],
            ],
        );
        check(
            "Dockerfile",
            "FROM x\nRUN --mount=type=y tc qdisc add dev eth0 root sfq\n",
            &[&["", "                   tc qdisc add dev eth0 root sfq"]],
        );
        check(
            "w.yml",
            "jobs:\n  - name: x\n    run: |\n      tc a\n      tc b\n  - run: \"tc c\"\n  - shell: tc d\n    script:\n      - tc e\n    other: f\n",
            &[&[
                "",
                "",
                "",
                "      tc a",
                "      tc b",
                "          tc c",
                "           tc d",
                "",
                "        tc e",
                "",
            ]],
        );
        check(
            "c.yml",
            "a:\n  command: [tc, \"x y\", z]\n  b:\n    argv:\n      - tc\n      - a b\n    ansible.builtin.command:\n      cmd: tc c\n    entrypoint: [\"sh\", \"-c\", \"tc d\"]\n",
            &[&[
                "",
                "            tc  \"x y\"  z",
                "",
                "",
                "        tc \\",
                "       'a b'",
                "",
                "           tc c",
                "                 \"sh\"  \"-c\"  \"tc d\"",
            ]],
        );
        check(
            "j.yml",
            "- shell: tc a {{ item.rate }}mbit ${{ x.wide }} b\n",
            &[&["         tc a $(j2          )mbit $(j2        ) b"]],
        );
        check("Dockerfile", "CMD [\"tc\", \"a b\"]\n", &[&["     \"tc\"  \"a b\""]]);
        check(
            "a.md",
            "text\n```sh\ntc a\n```\n\n```console\n$ tc qdisc show\nqdisc x\n```\n```json\n{}\n```\n",
            &[&["", "", "tc a"], &["", "", "", "", "", "", "  tc qdisc show", ""]],
        );
        assert_eq!(scripts("a.sh", "tc a"), None);
    }
}
