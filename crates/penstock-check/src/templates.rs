//! Templates within other files (Jinja, Helm, Go, GitHub), and the shells that lists of YAML name.

use std::collections::BTreeMap;

/// The name of what a template of Jinja, Helm or Go makes: `shape.sh` of `shape.sh.j2`.
pub(crate) fn template_of(name: &str) -> Option<&str> {
    [".j2", ".jinja2", ".jinja", ".tmpl", ".tpl", ".gotmpl"].into_iter().find_map(|e| name.strip_suffix(e))
}

/// Values that the file itself has for its templates: those below `vars` (`{{ wan }}`) and below `env` (`${{ env.WAN }}`), where each is given once.
pub(crate) fn given_in_yaml(lines: &[&str]) -> BTreeMap<String, String> {
    let indent = |l: &str| l.chars().take_while(|c| *c == ' ').count();
    let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let prefix = match line.trim().trim_start_matches("- ") {
            "vars:" => "",
            "env:" => "env.",
            _ => continue,
        };
        let own = lines[at + 1..].iter().take_while(|l| l.trim().is_empty() || indent(l) > indent(line));
        for (name, value) in own.filter_map(|l| l.trim().split_once(':')) {
            let value = value.split(" #").next().unwrap_or("").trim().trim_matches(['"', '\'']);
            let plain =
                !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "._:/%-".contains(c));
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_name && plain {
                let entry = all.entry(format!("{prefix}{name}")).or_insert_with(|| Some(value.to_owned()));
                if entry.as_deref() != Some(value) {
                    *entry = None;
                }
            }
        }
    }
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The function that prints the values of templates in what the shell reads.
const VALUE: &str = "y2";

/// A line whose templates of known values are calls that print them, as wide as they were.
pub(crate) fn with_given(line: &str, given: &BTreeMap<String, String>) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find("{{") {
        let Some(end) = rest[at..].find("}}").map(|n| at + n + 2) else { break };
        let name = rest[at + 2..end - 2].trim();
        let from = if rest[..at].ends_with('$') { at - 1 } else { at };
        let call = format!("$({VALUE} {name}");
        let width = rest[from..end].chars().count();
        out += &rest[..from];
        if given.contains_key(name) && call.len() < width {
            out += &format!("{call}{})", " ".repeat(width - call.len() - 1));
        } else {
            out += &rest[from..end];
        }
        rest = &rest[end..];
    }
    out + rest
}

/// A script with the function that its templates' values come from in its first line, where there is room.
pub(crate) fn with_values(text: String, given: &BTreeMap<String, String>) -> String {
    if !text.contains(&format!("$({VALUE} ")) {
        return text;
    }
    let cases: String = given.iter().map(|(name, value)| format!("{name}) echo {value};; ")).collect();
    let function = format!("{VALUE}() {{ case $1 in {cases}esac; }}");
    match text.split_once('\n') {
        Some((first, rest)) if first.trim().is_empty() => format!("{function}\n{rest}"),
        Some((first, rest)) if rest.starts_with('\n') => format!("{first}\n{function}{rest}"),
        _ => text.replace(&format!("$({VALUE} "), "$(j2 "),
    }
}

/// A line whose templates are output that nobody knows: `{{ item.rate }}` of Ansible and `${{ inputs.rate }}` of GitHub become a call of as many
/// characters, `{% … %}` becomes blanks.
pub(crate) fn without_templates(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some((at, open)) = ["${{", "{{", "{%"].iter().filter_map(|o| Some((rest.find(o)?, *o))).min() {
        let close = if open == "{%" { "%}" } else { "}}" };
        let Some(end) = rest[at..].find(close).map(|n| at + n + 2) else { break };
        let width = rest[at..end].chars().count();
        out += &rest[..at];
        match open {
            "{%" => out += &" ".repeat(width),
            _ => out += &format!("$(j2{})", " ".repeat(width.saturating_sub(5))),
        }
        rest = &rest[end..];
    }
    out + rest
}

/// Whether a command in YAML is the text behind `-c`: of the list that it stands in, or of the service's `entrypoint`.
pub(crate) fn is_given_to_shell(lines: &[&str], at: usize, keys: &[&str]) -> bool {
    let indent = |n: usize| lines[n].chars().take_while(|c| *c == ' ').count();
    let has_key =
        |l: &str| keys.iter().any(|k| l.trim_start().strip_prefix(k).is_some_and(|r| r.starts_with(':')));
    let above = || (0..at).rfind(|&n| !lines[n].trim().is_empty() && indent(n) < indent(at));
    let head = if has_key(lines[at]) { Some(at) } else { above() };
    let Some(head) = head else { return false };
    // Lines that are folded into one command of a shell: `sh -c "a &&`, and below it `b"`.
    let of_shell = |l: &str| {
        let mut words = l.split_whitespace();
        let program = words.next().map_or("", |w| w.rsplit('/').next().unwrap_or(w));
        matches!(program, "sh" | "bash" | "ash" | "dash")
            && words.next().is_some_and(|w| w.starts_with('-') && w.ends_with('c'))
    };
    let folds = lines[head].trim_end().ends_with(['>', '-', '+']) && lines[head].contains(": >");
    let next = (head + 1..lines.len()).find(|&n| !lines[n].trim().is_empty());
    if of_shell(lines[head]) || folds && next.is_some_and(|n| n < at && of_shell(lines[n])) {
        return true;
    }
    let option = |l: &str| {
        let word = l.trim().trim_start_matches("- ").trim_matches(['"', '\'', ' ']);
        word.len() < 6 && word.starts_with('-') && word.ends_with('c')
    };
    if lines[head].trim_start().starts_with("- ") {
        return head > 0 && option(lines[head - 1]);
    }
    let of = indent(head);
    let own = |n: &usize| lines[*n].trim().is_empty() || indent(*n) >= of;
    let first = (0..head).rev().take_while(own).last().unwrap_or(head);
    let own: Vec<&str> = (first..lines.len()).take_while(own).map(|n| lines[n]).collect();
    let Some(entry) = own.iter().position(|l| l.trim_start().starts_with("entrypoint:")) else {
        return false;
    };
    let listed = own[entry + 1..].iter().take_while(|l| l.trim_start().starts_with("- "));
    let words: Vec<&str> =
        std::iter::once(&own[entry]).chain(listed).flat_map(|l| l.split(['[', ']', ',', ' '])).collect();
    words.iter().any(|w| option(w))
}
