//! Options as GNU `getopt_long` reads them, and the program `getopt` that scripts call.
//!
//! Follows: glibc 2.36 `posix/getopt.c` (`_getopt_internal_r`, `process_long_option`); util-linux 2.38 `misc-utils/getopt.c`.
//! Differs: `W;` has no meaning of its own.

use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};

/// Whether an option takes a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Takes {
    /// None.
    Nothing,
    /// The rest of its word, or the next word.
    Word,
    /// Only what stands in the same word.
    Perhaps,
}

/// What words without a dash do to the options behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Nothing: all such words come last.
    OptionsFirst,
    /// The first one ends the options (`+`, `POSIXLY_CORRECT`).
    StopAtWord,
    /// They stay where they are (`-`).
    AsGiven,
}

/// The options a program knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// Name of the program, as its errors begin.
    pub program: String,
    /// Letters, each with up to two colons.
    pub short: String,
    /// Long names.
    pub long: Vec<(String, Takes)>,
    /// Long names may begin with one dash (`getopt_long_only`).
    pub one_dash: bool,
    /// See there.
    pub order: Order,
}

/// One thing that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// A letter; its word, if it takes one (empty where it might and has none).
    Short(char, Option<String>),
    /// A long name in full; its word likewise.
    Long(String, Option<String>),
    /// A word between options ([`Order::AsGiven`]).
    Word(String),
}

/// A command line in its parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Line {
    /// Options in order.
    pub items: Vec<Item>,
    /// What is left.
    pub words: Vec<String>,
    /// What is wrong, a line each.
    pub wrong: Vec<String>,
}

fn takes(colons: &str) -> Takes {
    match colons {
        c if c.starts_with("::") => Takes::Perhaps,
        c if c.starts_with(':') => Takes::Word,
        _ => Takes::Nothing,
    }
}

/// A list as `dev:,verbose`.
pub(crate) fn long_names(list: &str) -> impl Iterator<Item = (String, Takes)> + '_ {
    list.split([',', ' ', '\t', '\n']).filter(|o| !o.is_empty()).map(|one| {
        let name = one.trim_end_matches(':');
        (name.to_owned(), takes(&one[name.len()..]))
    })
}

impl Known {
    /// A program's own options: letters, and long names as [`long_names`] has them.
    pub fn of(program: &str, short: &str, long: &str) -> Known {
        let long = long_names(long).collect();
        Known {
            program: program.to_owned(),
            short: short.to_owned(),
            long,
            one_dash: false,
            order: Order::OptionsFirst,
        }
    }

    fn short_of(&self, c: char) -> Option<Takes> {
        let at = self.short.find(c).filter(|_| c != ':')?;
        Some(takes(&self.short[at + c.len_utf8()..]))
    }

    /// Reads the words behind the program's name.
    pub fn read(&self, words: &[String]) -> Line {
        let mut line = Line::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                line.words.extend(words.by_ref().cloned());
            } else if let Some(given) = word.strip_prefix("--") {
                self.long("--", given, &mut words, &mut line);
            } else if let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) {
                let first = letters.chars().next().and_then(|c| self.short_of(c));
                let long = self.one_dash && (first.is_none() || letters.chars().nth(1).is_some());
                if !(long && (first.is_none() || self.named(letters).is_some())) {
                    self.letters(letters, &mut words, &mut line);
                } else {
                    self.long("-", letters, &mut words, &mut line);
                }
            } else {
                match self.order {
                    Order::OptionsFirst => line.words.push(word.clone()),
                    Order::AsGiven => line.items.push(Item::Word(word.clone())),
                    Order::StopAtWord => {
                        line.words.push(word.clone());
                        line.words.extend(words.by_ref().cloned());
                    }
                }
            }
        }
        line
    }

    /// The long option a word names, in full or by its beginning.
    fn named(&self, given: &str) -> Option<&(String, Takes)> {
        let name = given.split_once('=').map_or(given, |g| g.0);
        let mut begin = self.long.iter().filter(|l| l.0.starts_with(name));
        let exact = self.long.iter().find(|l| l.0 == name);
        exact.or_else(|| begin.next().filter(|_| begin.next().is_none()))
    }

    fn long<'a>(
        &self,
        dashes: &str,
        given: &str,
        words: &mut impl Iterator<Item = &'a String>,
        line: &mut Line,
    ) {
        let program = &self.program;
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (given, None),
        };
        let Some((full, takes)) = self.named(given) else {
            let begin: Vec<_> = self.long.iter().filter(|l| l.0.starts_with(name)).collect();
            line.wrong.push(if begin.is_empty() {
                format!("{program}: unrecognized option '{dashes}{given}'")
            } else {
                let all: String = begin.iter().map(|l| format!(" '{dashes}{}'", l.0)).collect();
                format!("{program}: option '{dashes}{given}' is ambiguous; possibilities:{all}")
            });
            return;
        };
        let value = match (takes, value) {
            (Takes::Nothing, Some(_)) => {
                line.wrong.push(format!("{program}: option '{dashes}{full}' doesn't allow an argument"));
                return;
            }
            (Takes::Nothing, None) => None,
            (Takes::Perhaps, value) => Some(value.unwrap_or_default()),
            (Takes::Word, value) => match value.or_else(|| words.next().cloned()) {
                None => {
                    line.wrong.push(format!("{program}: option '{dashes}{full}' requires an argument"));
                    return;
                }
                value => value,
            },
        };
        line.items.push(Item::Long(full.clone(), value));
    }

    fn letters<'a>(&self, letters: &str, words: &mut impl Iterator<Item = &'a String>, line: &mut Line) {
        let program = &self.program;
        for (at, letter) in letters.char_indices() {
            let behind = &letters[at + letter.len_utf8()..];
            let value = match self.short_of(letter) {
                None => {
                    line.wrong.push(format!("{program}: invalid option -- '{letter}'"));
                    continue;
                }
                Some(Takes::Nothing) => {
                    line.items.push(Item::Short(letter, None));
                    continue;
                }
                Some(Takes::Perhaps) => Some(behind.to_owned()),
                Some(Takes::Word) if behind.is_empty() => words.next().cloned(),
                Some(Takes::Word) => Some(behind.to_owned()),
            };
            match value {
                None => line.wrong.push(format!("{program}: option requires an argument -- '{letter}'")),
                value => line.items.push(Item::Short(letter, value)),
            }
            return;
        }
    }
}

/// What a program says of a wrong line: the first fault, and where to read on.
pub(crate) fn try_help(program: &str, what: &str) -> String {
    format!("{what}\nTry '{program} --help' for more information.\n")
}

/// How words are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quotes {
    No,
    Bash,
    Csh,
}

impl Quotes {
    /// `print_normalized`.
    fn write(self, word: &str) -> String {
        let mut out = String::new();
        for c in word.chars() {
            match c {
                '\'' if self != Quotes::No => out.push_str("'\\''"),
                '\\' if self == Quotes::Csh => out.push_str("\\\\"),
                '!' if self == Quotes::Csh => out.push_str("'\\!'"),
                '\n' if self == Quotes::Csh => out.push_str("\\n"),
                c if self == Quotes::Csh && c.is_ascii_whitespace() => out.extend(['\'', '\\', c, '\'']),
                c => out.push(c),
            }
        }
        if self == Quotes::No { out } else { format!("'{out}'") }
    }
}

/// `generate_output`: what was read, ready for `eval set --`.
fn written(line: &Line, quotes: Quotes) -> String {
    let mut all = Vec::new();
    for item in &line.items {
        let value = match item {
            Item::Word(word) => {
                all.push(quotes.write(word));
                continue;
            }
            Item::Short(letter, value) => {
                all.push(format!("-{letter}"));
                value
            }
            Item::Long(name, value) => {
                all.push(format!("--{name}"));
                value
            }
        };
        all.extend(value.iter().map(|v| quotes.write(v)));
    }
    all.push("--".to_owned());
    all.extend(line.words.iter().map(|w| quotes.write(w)));
    format!(" {}\n", all.join(" "))
}

const USAGE: &str = "
Usage:
 getopt <optstring> <parameters>
 getopt [options] [--] <optstring> <parameters>
 getopt [options] -o|--options <optstring> [options] [--] <parameters>

Parse command options.

Options:
 -a, --alternative             allow long options starting with single -
 -l, --longoptions <longopts>  the long options to be recognized
 -n, --name <progname>         the name under which errors are reported
 -o, --options <optstring>     the short options to be recognized
 -q, --quiet                   disable error reporting by getopt(3)
 -Q, --quiet-output            no normal output
 -s, --shell <shell>           set quoting conventions to those of <shell>
 -T, --test                    test for getopt(1) version
 -u, --unquoted                do not quote the output

 -h, --help                    display this help
 -V, --version                 display version

For more details see getopt(1).
";

/// A call of `getopt`: its words, and whether `POSIXLY_CORRECT` and `GETOPT_COMPATIBLE` are set.
fn call(args: &[String], posix: bool, compatible: bool) -> ExecResult {
    let refused = |what: &str| ExecResult::err(try_help("getopt", what), 2);
    let mut quotes = Quotes::Bash;
    let (mut quiet, mut silent) = (false, false);
    let mut known = Known::of("getopt", "", "");
    let mut short = None;
    let mut words;
    if args.first().is_some_and(|first| compatible || !first.starts_with('-')) {
        // The oldest form: the letters, then the words, nothing quoted.
        quotes = Quotes::No;
        short = Some(args[0].trim_start_matches(['+', '-']).to_owned());
        words = args[1..].to_vec();
    } else {
        let long =
            "options:,longoptions:,quiet,quiet-output,shell:,test,unquoted,help,alternative,name:,version";
        let own = Known { order: Order::StopAtWord, ..Known::of("getopt", "ao:l:n:qQs:TuhV", long) };
        let line = own.read(args);
        // getopt stops at its first fault; what stands before it has been read.
        if let Some(wrong) = line.wrong.first() {
            return refused(wrong);
        }
        for item in line.items {
            let (letter, value) = match item {
                Item::Short(letter, value) => (letter, value.unwrap_or_default()),
                Item::Long(name, value) => {
                    let letter = match name.as_str() {
                        "quiet-output" => 'Q',
                        "test" => 'T',
                        "version" => 'V',
                        name => name.chars().next().unwrap_or_default(),
                    };
                    (letter, value.unwrap_or_default())
                }
                Item::Word(_) => continue,
            };
            match letter {
                'a' => known.one_dash = true,
                'o' => short = Some(value),
                'l' => known.long.extend(long_names(&value)),
                'n' => known.program = value,
                'q' => quiet = true,
                'Q' => silent = true,
                's' => match value.as_str() {
                    "sh" | "bash" => quotes = Quotes::Bash,
                    "csh" | "tcsh" => quotes = Quotes::Csh,
                    _ => return refused("getopt: unknown shell after -s or --shell argument"),
                },
                'T' => return ExecResult { exit_code: 4, ..ExecResult::default() },
                'u' => quotes = Quotes::No,
                'h' => return ExecResult::ok(USAGE.to_owned()),
                _ => return ExecResult::ok("getopt from util-linux 2.38.1\n".to_owned()),
            }
        }
        words = line.words;
        if short.is_none() && !words.is_empty() {
            short = Some(words.remove(0));
        }
    }
    let Some(short) = short else {
        return refused("getopt: missing optstring argument");
    };
    known.order = match short.chars().next() {
        Some('-') => Order::AsGiven,
        Some('+') => Order::StopAtWord,
        _ if posix => Order::StopAtWord,
        _ => Order::OptionsFirst,
    };
    known.short = short.trim_start_matches(['+', '-']).to_owned();
    // A first colon asks getopt(3) to be quiet.
    quiet |= known.short.starts_with(':');
    let line = known.read(&words);
    let stderr: String = line.wrong.iter().filter(|_| !quiet).map(|s| format!("{s}\n")).collect();
    let exit_code = i32::from(!line.wrong.is_empty());
    let stdout = if silent { String::new() } else { written(&line, quotes) };
    ExecResult { stdout: stdout.into(), stderr: stderr.into(), exit_code, ..ExecResult::default() }
}

/// The program.
pub(crate) struct Getopt;

#[async_trait]
impl Builtin for Getopt {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let set = |name: &str| ctx.env.contains_key(name);
        Ok(call(ctx.args, set("POSIXLY_CORRECT"), set("GETOPT_COMPATIBLE")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> (String, String, i32) {
        let args: Vec<String> = args.iter().map(|&a| a.to_owned()).collect();
        let got = call(&args, false, false);
        (got.stdout.to_string(), got.stderr.to_string(), got.exit_code)
    }

    #[test]
    fn options_before_words() {
        let line = |words: &str| {
            let mut args = vec!["-n", "me", "-o", "d:vx::", "-l", "dev:,verbose,version,color::", "--"];
            args.extend(words.split_whitespace());
            of(&args)
        };
        let fine = |words: &str, want: &str| {
            assert_eq!(line(words), (format!(" {want}\n"), String::new(), 0), "{words}");
        };
        fine("--dev eth1 -v rest", "--dev 'eth1' -v -- 'rest'");
        fine("rest -vdeth0 --dev=a more -- -v", "-v -d 'eth0' --dev 'a' -- 'rest' 'more' '-v'");
        fine("-x -x1 --color --color=no --verb", "-x '' -x '1' --color '' --color 'no' --verbose --");
        let wrong = |words: &str, want: &str| {
            let (_, said, exit) = line(words);
            assert_eq!((said, exit), (format!("me: {want}\n"), 1), "{words}");
        };
        wrong("-q a", "invalid option -- 'q'");
        wrong("-d", "option requires an argument -- 'd'");
        wrong("--nope", "unrecognized option '--nope'");
        wrong("--ver", "option '--ver' is ambiguous; possibilities: '--verbose' '--version'");
        wrong("--verbose=1", "option '--verbose' doesn't allow an argument");
    }

    // Each as util-linux 2.38.1 answered.
    #[test]
    fn its_own_options() {
        for (args, want) in [
            (&["ab:", "-a", "-b", "x y", "c"][..], " -a -b x y -- c\n"),
            (&["-o", "+ab:", "--", "-a", "x", "-b", "y z"], " -a -- 'x' '-b' 'y z'\n"),
            (&["-o", "-ab:", "--", "-a", "x", "-b", "y z", "k"], " -a 'x' -b 'y z' 'k' --\n"),
            (&["-u", "-o", "ab:", "--", "-a", "x", "-b", "y z", "k"], " -a -b y z -- x k\n"),
            (
                &["-a", "-o", "ab:", "-l", "foo,bar:", "--", "-foo", "-bar", "3", "-a", "--", "y"],
                " --foo --bar '3' -a -- 'y'\n",
            ),
            (&["-a", "-o", "ab", "-l", "foo", "--", "-ab", "-f"], " -a -b --foo --\n"),
            (&["-Q", "-o", "a", "--", "-a"], ""),
            (&["-o", "ab", "--lon", "foo", "--", "-a"], " -a --\n"),
            (&["-oab", "--", "-b"], " -b --\n"),
            (&["--options=a", "-la,bc", "--", "--bc"], " --bc --\n"),
            (&["-o", "a b", "-l", "foo bar:", "--", "--bar=", "--foo"], " --bar '' --foo --\n"),
            (&["-o", "a:", "--", "-a", "it's"], " -a 'it'\\''s' --\n"),
            (
                &["-s", "csh", "-o", "a:", "--", "-a", "x!y 'z' \\ \nk"],
                " -a 'x'\\!'y'\\ ''\\''z'\\'''\\ '\\\\'\\ '\\nk' --\n",
            ),
            (&["-V"], "getopt from util-linux 2.38.1\n"),
        ] {
            assert_eq!(of(args), (want.to_owned(), String::new(), 0), "{args:?}");
        }
        let try_it = |what: &str| format!("getopt: {what}\nTry 'getopt --help' for more information.\n");
        for (args, out, said, exit) in [
            (&["-Z"][..], "", try_it("invalid option -- 'Z'"), 2),
            (&[], "", try_it("missing optstring argument"), 2),
            (&["-o", "a", "-s", "foo", "--"], "", try_it("unknown shell after -s or --shell argument"), 2),
            (&["-q", "-o", "a", "--", "-z"], " --\n", String::new(), 1),
            (
                &["-a", "-o", "a", "-l", "foo", "--", "-fox"],
                " --\n",
                "getopt: unrecognized option '-fox'\n".to_owned(),
                1,
            ),
            (&["-T"], "", String::new(), 4),
        ] {
            assert_eq!(of(args), (out.to_owned(), said, exit), "{args:?}");
        }
        let posix = call(&["-o", "ab", "--", "-a", "x", "-b"].map(str::to_owned), true, false);
        assert_eq!(posix.stdout.to_string(), " -a -- 'x' '-b'\n");
    }
}
