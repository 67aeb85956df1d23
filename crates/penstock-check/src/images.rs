//! Dockerfiles whose `RUN` sets up what no image keeps.

use crate::source::Source;

/// Lines of a Dockerfile in which `RUN` has tc change something (PS340). Text in quotes or for a file is not carried out here.
pub(crate) fn built(text: &str) -> Vec<u32> {
    let source = Source::new(text);
    let mut all = Vec::new();
    let mut at = 1;
    while at <= source.lines.len() as u32 {
        let end = source.end_of(at).max(at);
        let logical = source.logical(at);
        let mut words = logical.split_whitespace();
        let runs = words.next().is_some_and(|w| w.eq_ignore_ascii_case("run"));
        let plain = logical.replace("2>/dev/null", "").replace("2> /dev/null", "");
        if runs && !plain.contains(['"', '\'', '>', '<', '`']) {
            let command = plain.trim_start().get(3..).unwrap_or("").replace("&&", ";").replace("||", ";");
            if let Some(piece) = command.split(';').find(|p| sets_up(p)) {
                // The line of the command itself, where `RUN` goes on over several.
                let own = piece.trim();
                all.push((at..=end).find(|n| source.line(*n).contains(own)).unwrap_or(at));
            }
        }
        at = end + 1;
    }
    all
}

/// Whether a command is one of tc that adds something.
fn sets_up(command: &str) -> bool {
    let words = command.split_whitespace().skip_while(|w| *w == "sudo" || w.starts_with("--"));
    let words: Vec<&str> = words.take(3).collect();
    matches!(words.as_slice(), [tc, "qdisc" | "class" | "filter", "add" | "replace" | "change"] if tc.rsplit('/').next() == Some("tc"))
}

#[cfg(test)]
mod tests {
    use super::built;

    #[test]
    fn what_run_carries_out_is_told_and_what_it_writes_is_not() {
        assert_eq!(built("FROM a\nRUN tc qdisc add dev eth0 root fq\n"), [2]);
        let several =
            "FROM a\nRUN apk add iproute2 && \\\n  tc qdisc replace dev eth0 root fq 2>/dev/null || true\n";
        assert_eq!(built(several), [3]);
        assert!(built("RUN echo 'tc qdisc add dev eth0 root fq' > /run.sh\n").is_empty());
        assert!(built("RUN printf 'set -e; tc qdisc add dev eth0 root fq' > /run.sh\n").is_empty());
        assert!(built("CMD tc qdisc add dev eth0 root fq\nRUN tc -V\n").is_empty());
    }
}
