//! Units of systemd whose start ends at a deletion.

/// A deletion of a unit that nothing lets fail, where a command of tc behind it sets something up: its line, and the column (from 1) at which `-` belongs (PS252).
/// systemd.service(5): of several `ExecStart=` the first that fails ends the start, and the rest is left out.
pub(crate) fn ends_at(text: &str) -> Option<(u32, u32)> {
    let mut first = None;
    for (number, line) in text.lines().enumerate() {
        let Some((key, value)) = line.split_once('=') else { continue };
        if !matches!(key.trim(), "ExecStart" | "ExecStartPre" | "ExecStartPost") {
            continue;
        }
        let command = value.trim_start_matches(|c| "-@:+!| ".contains(c));
        let prefix = &value[..value.len() - command.len()];
        let mut words = command.split_whitespace();
        if words.next().and_then(|p| p.rsplit('/').next()) != Some("tc") {
            continue;
        }
        let words: Vec<&str> = words.collect();
        let (deletes, sets) = (
            words.iter().any(|w| matches!(*w, "del" | "delete")),
            words.iter().any(|w| matches!(*w, "add" | "replace" | "change")),
        );
        match first {
            // What was set up in the same start is there to be deleted.
            None if sets => return None,
            None if deletes && !prefix.contains('-') => {
                let blanks = prefix.chars().take_while(|c| *c == ' ').count();
                first = Some((number as u32 + 1, (key.chars().count() + 2 + blanks) as u32));
            }
            Some(_) if sets => return first,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::ends_at;

    #[test]
    fn a_start_ends_at_a_deletion_that_may_not_fail() {
        let unit = |first: &str| {
            format!("[Service]\nExecStart={first}\nExecStart=/sbin/tc qdisc add dev eth0 root fq\n")
        };
        assert_eq!(ends_at(&unit("/sbin/tc qdisc del dev eth0 root")), Some((2, 11)));
        assert_eq!(ends_at(&unit("-/sbin/tc qdisc del dev eth0 root")), None);
        assert_eq!(ends_at(&unit("+-/sbin/tc qdisc del dev eth0 root")), None);
        assert_eq!(ends_at(&unit("/bin/sh -c 'tc qdisc del dev eth0 root; true'")), None);
        assert_eq!(
            ends_at(
                "[Service]\nExecStart=/sbin/tc qdisc add dev a root fq\nExecStop=/sbin/tc qdisc del dev a root\n"
            ),
            None
        );
    }
}
