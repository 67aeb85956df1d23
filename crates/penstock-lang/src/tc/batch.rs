//! Lines of a batch file (`tc -batch`, `ip -batch`, `bridge -batch`) to words.
//!
//! Follows: iproute2 6.1.0 `lib/utils.c` `getcmdline`, `makeargs`; iproute2 2.6.35 knows no quotes.

use crate::token::Word;
use penstock_model::Kernel;

/// One command of a batch file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchLine {
    /// Number of its last line in the file, from 1: the one tc names when the command fails.
    pub number: u32,
    /// The words, at least one.
    pub words: Vec<Word>,
}

/// What ends a batch before its end, in iproute2's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchFault {
    /// For standard error.
    pub stderr: String,
    /// Whether the program exits with status 1 here; else it takes this for the end of the file.
    pub exits: bool,
}

/// `MAX_ARGS`, one of them for the end.
const MAX_ARGS: usize = 511;

/// The commands of a batch file in order; after a fault there are no more.
pub fn lines(text: &str, kernel: Kernel) -> impl Iterator<Item = Result<BatchLine, BatchFault>> + '_ {
    let mut left = text.split_inclusive('\n');
    let mut number = 0;
    let mut over = false;
    std::iter::from_fn(move || {
        while !over {
            let Some(line) = left.next() else { break };
            number += 1;
            let mut line = before_comment(line).to_owned();
            while let Some(at) = line.find("\\\n") {
                let Some(next) = left.next() else {
                    over = true;
                    let stderr = "Missing continuation line\n".to_owned();
                    return Some(Err(BatchFault { stderr, exits: false }));
                };
                number += 1;
                line.truncate(at);
                line.push_str(before_comment(next));
            }
            match words(&line, kernel) {
                Ok(words) if words.is_empty() => {}
                Ok(words) => return Some(Ok(BatchLine { number, words })),
                Err(said) => {
                    over = true;
                    return Some(Err(BatchFault { stderr: format!("{said}\n"), exits: true }));
                }
            }
        }
        None
    })
}

fn before_comment(line: &str) -> &str {
    line.split_once('#').map_or(line, |(before, _)| before)
}

fn words(line: &str, kernel: Kernel) -> Result<Vec<Word>, &'static str> {
    const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(BLANK);
        let Some(first) = rest.chars().next() else { return Ok(words) };
        if words.len() == MAX_ARGS {
            return Err("Too many arguments to command");
        }
        let column = line[..line.len() - rest.len()].chars().count() as u32 + 1;
        let quoted = matches!(first, '\'' | '"') && kernel != Kernel::V2_6_35;
        let (word, after) = if quoted {
            rest[1..].split_once(first).ok_or("Unterminated quoted string")?
        } else {
            let end = rest.find(BLANK).unwrap_or(rest.len());
            rest.split_at(end)
        };
        words.push(Word::new(word, column));
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, kernel: Kernel) -> Vec<(u32, Vec<String>)> {
        let lines = lines(text, kernel).map(|l| l.unwrap());
        lines.map(|l| (l.number, l.words.into_iter().map(|w| w.text).collect())).collect()
    }

    #[test]
    fn comments_continuations_quotes() {
        let got = read("# all\nqdisc add # some\n\n a \\\n  b \\\nc#d\n'x y'z \"\"\n", Kernel::V6_12);
        let want: [(u32, &[&str]); 3] =
            [(2, &["qdisc", "add"]), (6, &["a", "b", "c"]), (7, &["x y", "z", ""])];
        assert_eq!(got.len(), want.len());
        for ((number, words), (n, w)) in got.iter().zip(want) {
            assert_eq!((*number, words.iter().map(String::as_str).collect::<Vec<_>>()), (n, w.to_vec()));
        }
        assert_eq!(read("a 'b c'", Kernel::V2_6_35), [(1, vec!["a".into(), "'b".into(), "c'".into()])]);
    }

    #[test]
    fn faults_end_it() {
        let all: Vec<_> = lines("a\n'b\nc\n", Kernel::V6_12).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(
            all[1],
            Err(BatchFault { stderr: "Unterminated quoted string\n".to_owned(), exits: true })
        );
        let all: Vec<_> = lines("a \\\n", Kernel::V6_12).collect();
        let stderr = "Missing continuation line\n".to_owned();
        assert_eq!(all, [Err(BatchFault { stderr, exits: false })]);
    }
}
