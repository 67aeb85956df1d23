//! Commands of chance: `shuf`, `sort -R`, `uuidgen`, `openssl rand`, and `$SRANDOM`. All throw the script's own dice.

use crate::chance::{Chance, mix};
use crate::tools::own;
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The command that gives what `$SRANDOM` is ([`crate::rewrite`] calls it).
pub(crate) const SRANDOM: &str = "penstock-srandom";

/// Most that one command throws.
const MAX_DRAWS: u64 = 10_000_000;

pub(crate) fn tools(chance: &Arc<Chance>) -> Vec<(String, Box<dyn Builtin>)> {
    let tool = |kind| -> Box<dyn Builtin> { Box::new(Dice { kind, chance: Arc::clone(chance) }) };
    vec![
        ("shuf".to_owned(), tool(Kind::Shuf)),
        ("sort".to_owned(), tool(Kind::Sort)),
        ("uuidgen".to_owned(), tool(Kind::Uuid)),
        ("openssl".to_owned(), tool(Kind::Openssl)),
        (SRANDOM.to_owned(), tool(Kind::Srandom)),
    ]
}

#[derive(Clone, Copy)]
enum Kind {
    Shuf,
    Sort,
    Uuid,
    Openssl,
    Srandom,
}

struct Dice {
    kind: Kind,
    chance: Arc<Chance>,
}

#[async_trait]
impl Builtin for Dice {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let said = match self.kind {
            Kind::Shuf => shuf(&self.chance, &ctx).await,
            Kind::Sort => match at_random(ctx.args) {
                Some(asked) => sorted(&self.chance, &ctx, asked).await,
                None => return own("sort", &ctx).await,
            },
            Kind::Uuid => uuid(&self.chance, ctx.args).map(String::into_bytes),
            Kind::Openssl => rand(&self.chance, &ctx).await,
            Kind::Srandom => Ok(format!("{}\n", self.chance.next() >> 32).into_bytes()),
        };
        Ok(match said {
            Ok(bytes) => ExecResult { stdout: bytes.into(), ..ExecResult::default() },
            Err(why) => ExecResult::err(format!("{why}\n"), 1),
        })
    }
}

/// Bytes, or what the command says.
type Said<T> = std::result::Result<T, String>;

/// A file's bytes; `-` and none are standard input.
async fn read(name: &str, ctx: &BuiltinContext<'_>, tool: &str) -> Said<Vec<u8>> {
    if name == "-" {
        return Ok(ctx.stdin.map(|s| s.as_bytes().to_vec()).unwrap_or_default());
    }
    let found = ctx.fs.read_file(&ctx.cwd.join(name)).await;
    found.map_err(|_| format!("{tool}: {name}: No such file or directory"))
}

async fn give(bytes: Vec<u8>, out: Option<&str>, ctx: &BuiltinContext<'_>, tool: &str) -> Said<Vec<u8>> {
    let Some(out) = out else { return Ok(bytes) };
    let path = ctx.cwd.join(out);
    ctx.fs.write_file(Path::new(&path), &bytes).await.map_err(|e| format!("{tool}: {out}: {e}"))?;
    Ok(Vec::new())
}

/// Lines without their ends.
fn lines(bytes: &[u8], end: u8) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = bytes.split(|b| *b == end).map(<[u8]>::to_vec).collect();
    if all.last().is_some_and(Vec::is_empty) {
        all.pop();
    }
    all
}

fn joined(all: impl IntoIterator<Item = Vec<u8>>, end: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for line in all {
        out.extend(line);
        out.push(end);
    }
    out
}

/// The words of a command: each option with its value, then the rest.
struct Words<'a> {
    options: Vec<(char, &'a str)>,
    rest: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// `flags` are options without a value, `valued` those with one; `long` gives the long ones their letters.
    fn read(
        args: &'a [String],
        tool: &str,
        flags: &str,
        valued: &str,
        long: &[(&str, char)],
    ) -> Said<Words<'a>> {
        let (mut options, mut rest) = (Vec::new(), Vec::new());
        let mut words = args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let no = || format!("{tool}: invalid option '{word}'");
            if let Some(name) = word.strip_prefix("--") {
                if name.is_empty() {
                    rest.extend(words.by_ref());
                    break;
                }
                let (name, given) = name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v)));
                let letter = long.iter().find(|l| l.0 == name).ok_or_else(no)?.1;
                let value = match (valued.contains(letter), given) {
                    (true, Some(given)) => given,
                    (true, None) => words.next().ok_or_else(no)?,
                    (false, _) => "",
                };
                options.push((letter, value));
                continue;
            }
            let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) else {
                rest.push(word);
                continue;
            };
            for (at, letter) in letters.char_indices() {
                if flags.contains(letter) {
                    options.push((letter, ""));
                } else if valued.contains(letter) {
                    let given = &letters[at + letter.len_utf8()..];
                    let value = if given.is_empty() { words.next().ok_or_else(no)? } else { given };
                    options.push((letter, value));
                    break;
                } else {
                    return Err(no());
                }
            }
        }
        Ok(Words { options, rest })
    }
    fn has(&self, letter: char) -> bool {
        self.options.iter().any(|o| o.0 == letter)
    }
    fn value(&self, letter: char) -> Option<&'a str> {
        self.options.iter().rev().find(|o| o.0 == letter).map(|o| o.1)
    }
}

/// `shuf`, as coreutils has it.
async fn shuf(chance: &Chance, ctx: &BuiltinContext<'_>) -> Said<Vec<u8>> {
    let long = [
        ("echo", 'e'),
        ("input-range", 'i'),
        ("head-count", 'n'),
        ("output", 'o'),
        ("repeat", 'r'),
        ("zero-terminated", 'z'),
    ];
    let words = Words::read(ctx.args, "shuf", "erz", "ino", &long)?;
    let end = if words.has('z') { 0 } else { b'\n' };
    let count =
        words.value('n').map(|n| n.parse::<u64>().map_err(|_| format!("shuf: invalid line count: '{n}'")));
    let count = count.transpose()?;
    let whole = |n: u64| n.to_string().into_bytes();
    let (len, item): (u64, Box<dyn Fn(u64) -> Vec<u8> + Send>) = match (words.value('i'), words.has('e')) {
        (Some(range), false) => {
            let no = || format!("shuf: invalid input range: '{range}'");
            let (low, high) = range.split_once('-').ok_or_else(no)?;
            let (low, high): (u64, u64) = (low.parse().map_err(|_| no())?, high.parse().map_err(|_| no())?);
            let len = high.checked_sub(low).and_then(|n| n.checked_add(1)).ok_or_else(no)?;
            (len, Box::new(move |n| whole(low + n)))
        }
        (Some(_), true) => return Err("shuf: cannot combine -e and -i options".to_owned()),
        (None, echo) => {
            let all = match (echo, words.rest.as_slice()) {
                (true, rest) => rest.iter().map(|w| w.as_bytes().to_vec()).collect(),
                (false, []) => lines(&read("-", ctx, "shuf").await?, end),
                (false, [file]) => lines(&read(file, ctx, "shuf").await?, end),
                (false, [_, extra, ..]) => return Err(format!("shuf: extra operand '{extra}'")),
            };
            (all.len() as u64, Box::new(move |n| all[n as usize].clone()))
        }
    };
    let wanted = match (words.has('r'), count) {
        (false, count) => count.unwrap_or(u64::MAX).min(len),
        (true, Some(count)) if len > 0 || count == 0 => count,
        (true, Some(_)) => return Err("shuf: no lines to repeat".to_owned()),
        (true, None) => return Err("shuf: -r without -n would not end; say -n".to_owned()),
    };
    if wanted > MAX_DRAWS {
        return Err(format!("shuf: line limit ({MAX_DRAWS}) exceeded; output truncated"));
    }
    let out = if words.has('r') {
        joined((0..wanted).map(|_| item(chance.below(len))), end)
    } else {
        joined(drawn(chance, len, wanted).into_iter().map(item), end)
    };
    give(out, words.value('o'), ctx, "shuf").await
}

/// So many of the numbers below `len`, in the order they are drawn: Fisher and Yates, of which only what is moved is kept.
fn drawn(chance: &Chance, len: u64, wanted: u64) -> Vec<u64> {
    let mut moved = BTreeMap::new();
    let draw = |n| {
        let other = n + chance.below(len - n);
        let there = moved.get(&other).copied().unwrap_or(other);
        let here = moved.get(&n).copied().unwrap_or(n);
        moved.insert(other, here);
        there
    };
    (0..wanted).map(draw).collect()
}

/// What `sort` is asked where it sorts by chance.
fn at_random(args: &[String]) -> Option<&[String]> {
    let short = |w: &String| {
        w.starts_with('-') && !w.starts_with("--") && {
            // Behind `-k`, `-t`, `-o`, `-S`, `-T` come values.
            let letters = &w[1..w.find(['k', 't', 'o', 'S', 'T']).unwrap_or(w.len())];
            letters.contains('R')
        }
    };
    let long = |w: &String| w == "--random-sort" || w == "--sort=random";
    let key = |w: &String| w.starts_with("-k") && w.ends_with('R');
    args.iter().take_while(|w| *w != "--").any(|w| short(w) || long(w) || key(w)).then_some(args)
}

/// `sort -R`: by a hash of each line that differs from call to call, so that equal lines stand together.
async fn sorted(chance: &Chance, ctx: &BuiltinContext<'_>, args: &[String]) -> Said<Vec<u8>> {
    let long = [
        ("random-sort", 'R'),
        ("reverse", 'r'),
        ("unique", 'u'),
        ("zero-terminated", 'z'),
        ("stable", 's'),
        ("output", 'o'),
        ("sort", '='),
    ];
    let words = Words::read(args, "sort", "Rruzs", "o=", &long)
        .map_err(|said| format!("{said}: with -R only -r, -u, -s, -z and -o are known here"))?;
    let end = if words.has('z') { 0 } else { b'\n' };
    let mut all = Vec::new();
    for name in if words.rest.is_empty() { &["-"][..] } else { &words.rest } {
        all.extend(lines(&read(name, ctx, "sort").await?, end));
    }
    let salt = chance.next();
    let hash = |line: &[u8]| line.iter().fold(mix(salt), |h, b| mix(h ^ u64::from(*b)));
    let mut keyed: Vec<(u64, Vec<u8>)> = all.into_iter().map(|l| (hash(&l), l)).collect();
    keyed.sort();
    if words.has('r') {
        keyed.reverse();
    }
    if words.has('u') {
        keyed.dedup();
    }
    give(joined(keyed.into_iter().map(|k| k.1), end), words.value('o'), ctx, "sort").await
}

fn uuid(chance: &Chance, args: &[String]) -> Said<String> {
    match args.iter().find(|w| !matches!(w.as_str(), "-r" | "--random")) {
        None => Ok(chance.uuid() + "\n"),
        Some(other) => Err(format!("uuidgen: {other}: only random ones are made here (-r)")),
    }
}

/// `openssl rand`.
async fn rand(chance: &Chance, ctx: &BuiltinContext<'_>) -> Said<Vec<u8>> {
    let Some((command, args)) = ctx.args.split_first().filter(|a| a.0 == "rand") else {
        let asked = ctx.args.first().map_or("", String::as_str);
        return Err(format!("openssl: {asked}: only rand is known here"));
    };
    let (mut form, mut out, mut number) = ("", None, None);
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-hex" | "-base64" => form = word,
            "-out" => out = Some(words.next().ok_or(format!("{command}: Use -help for summary."))?),
            n if n.parse::<usize>().is_ok() => number = n.parse().ok(),
            other => return Err(format!("{command}: Unknown option or number: {other}")),
        }
    }
    let number: usize = number.ok_or(format!("{command}: Use -help for summary."))?;
    if number as u64 > MAX_DRAWS {
        return Err(format!("openssl: byte limit ({MAX_DRAWS}) exceeded; output truncated"));
    }
    let bytes = chance.bytes(number);
    let said = match form {
        "-hex" => bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into_bytes(),
        "-base64" => base64(&bytes).into_bytes(),
        _ => return give(bytes, out, ctx, "openssl").await,
    };
    give([said, b"\n".to_vec()].concat(), out, ctx, "openssl").await
}

/// RFC 4648, in lines of 64 as openssl prints them.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (at, three) in bytes.chunks(3).enumerate() {
        if at > 0 && at % 16 == 0 {
            out.push('\n');
        }
        let n = three.iter().fold(0_u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(n >> (18 - 6 * place) & 63) as usize] as char;
            out.push(if place <= three.len() { letter } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        let of = |t: &str| base64(t.as_bytes());
        assert_eq!(
            [of(""), of("f"), of("fo"), of("foo"), of("foobar")],
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]
        );
        assert_eq!(base64(&[0; 49]).lines().map(str::len).collect::<Vec<_>>(), [64, 4]);
    }

    #[test]
    fn each_is_drawn_once() {
        let mut all = drawn(&Chance::new(3), 1000, 1000);
        assert_ne!(all, (0..1000).collect::<Vec<_>>());
        all.sort();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert_eq!(drawn(&Chance::new(3), u64::MAX, 3).len(), 3);
    }

    #[test]
    fn where_sort_is_asked_for_chance() {
        let asks = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            at_random(&words).is_some()
        };
        assert!(
            asks("-R") && asks("-uR x") && asks("--random-sort") && asks("--sort=random") && asks("-k2R")
        );
        assert!(!asks("-r R") && !asks("-o R") && !asks("-tR") && !asks("-- -R") && !asks("-k 1"));
    }
}
