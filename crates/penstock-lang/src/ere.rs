//! Extended regular expressions of POSIX, as far as names of settings need them: characters, `.`, sets, `^`, `$`, groups, `|`, `*`, `+`, `?`,
//! `{n,m}`.

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(Vec<Vec<Item>>);

/// Something, so many times.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Item {
    what: What,
    least: usize,
    most: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    Char(char),
    Any,
    /// From, to; whether the others are meant.
    Set(Vec<(char, char)>, bool),
    Begin,
    End,
    Group(Vec<Vec<Item>>),
}

/// How many steps a search takes before it gives up.
const STEPS: usize = 1_000_000;

impl Pattern {
    /// Reads a pattern; `None` where it is none.
    pub fn new(text: &str) -> Option<Pattern> {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let all = alternatives(&chars, &mut at, 0)?;
        (at == chars.len()).then_some(Pattern(all))
    }

    /// Whether it is found in a text.
    pub fn is_in(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut search = Search { text: &text, steps: 0 };
        (0..=text.len()).any(|from| search.any_of(&self.0, from, &mut |_, _| true))
    }
}

fn alternatives(chars: &[char], at: &mut usize, depth: usize) -> Option<Vec<Vec<Item>>> {
    if depth > 50 {
        return None;
    }
    let mut all = vec![Vec::new()];
    while let Some(&c) = chars.get(*at) {
        if c == ')' && depth > 0 {
            break;
        }
        *at += 1;
        let what = match c {
            '|' => {
                all.push(Vec::new());
                continue;
            }
            '.' => What::Any,
            '^' => What::Begin,
            '$' => What::End,
            '[' => set(chars, at)?,
            '(' => {
                let inner = alternatives(chars, at, depth + 1)?;
                if chars.get(*at) != Some(&')') {
                    return None;
                }
                *at += 1;
                What::Group(inner)
            }
            '\\' => {
                *at += 1;
                What::Char(*chars.get(*at - 1)?)
            }
            '*' | '+' | '?' => return None,
            c => What::Char(c),
        };
        let (least, most) = times(chars, at)?;
        all.last_mut()?.push(Item { what, least, most });
    }
    Some(all)
}

/// `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`.
fn times(chars: &[char], at: &mut usize) -> Option<(usize, usize)> {
    let found = match chars.get(*at) {
        Some('*') => (0, usize::MAX),
        Some('+') => (1, usize::MAX),
        Some('?') => (0, 1),
        Some('{') => {
            let end = *at + chars[*at..].iter().position(|&c| c == '}')?;
            let inner: String = chars[*at + 1..end].iter().collect();
            *at = end;
            match inner.split_once(',') {
                None => {
                    let n = inner.parse().ok()?;
                    (n, n)
                }
                Some((n, "")) => (n.parse().ok()?, usize::MAX),
                Some((n, m)) => (n.parse().ok()?, m.parse().ok()?),
            }
        }
        _ => return Some((1, 1)),
    };
    *at += 1;
    Some(found)
}

fn set(chars: &[char], at: &mut usize) -> Option<What> {
    let others = chars.get(*at) == Some(&'^');
    *at += usize::from(others);
    let begin = *at;
    let mut ranges = Vec::new();
    loop {
        let c = *chars.get(*at)?;
        if c == ']' && *at > begin {
            *at += 1;
            return Some(What::Set(ranges, others));
        }
        if c == '[' && chars.get(*at + 1) == Some(&':') {
            let end = *at + chars[*at..].iter().position(|&c| c == ']')?;
            let name: String = chars[*at + 2..end - 1].iter().collect();
            ranges.extend_from_slice(match name.as_str() {
                "digit" => &[('0', '9')],
                "lower" => &[('a', 'z')],
                "upper" => &[('A', 'Z')],
                "alpha" => &[('a', 'z'), ('A', 'Z')],
                "alnum" => &[('a', 'z'), ('A', 'Z'), ('0', '9')],
                _ => return None,
            });
            *at = end + 1;
            continue;
        }
        let range = chars.get(*at + 1) == Some(&'-') && chars.get(*at + 2).is_some_and(|&c| c != ']');
        ranges.push((c, if range { chars[*at + 2] } else { c }));
        *at += if range { 3 } else { 1 };
    }
}

struct Search<'a> {
    text: &'a [char],
    steps: usize,
}

/// What has to be found behind a place.
type Then<'t, 'a> = &'t mut dyn FnMut(&mut Search<'a>, usize) -> bool;

impl<'a> Search<'a> {
    fn any_of(&mut self, all: &[Vec<Item>], at: usize, then: Then<'_, 'a>) -> bool {
        all.iter().any(|items| self.each_of(items, 0, at, &mut *then))
    }

    fn each_of(&mut self, items: &[Item], done: usize, at: usize, then: Then<'_, 'a>) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return false;
        }
        let Some(item) = items.first() else { return then(self, at) };
        let more = done < item.most
            && self.one(&item.what, at, &mut |search, next| {
                // What matches nothing does so but once.
                (next > at || done < item.least) && search.each_of(items, done + 1, next, &mut *then)
            });
        more || done >= item.least && self.each_of(&items[1..], 0, at, then)
    }

    fn one(&mut self, what: &What, at: usize, then: Then<'_, 'a>) -> bool {
        let next = self.text.get(at).copied();
        let fits = match what {
            What::Begin => return at == 0 && then(self, at),
            What::End => return at == self.text.len() && then(self, at),
            What::Group(all) => return self.any_of(all, at, then),
            What::Char(c) => next == Some(*c),
            What::Any => next.is_some(),
            What::Set(ranges, others) => {
                next.is_some_and(|c| ranges.iter().any(|&(from, to)| (from..=to).contains(&c)) != *others)
            }
        };
        fits && then(self, at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_or_not() {
        let is = |pattern: &str, text: &str| Pattern::new(pattern).map(|p| p.is_in(text));
        for (pattern, text, want) in [
            ("forward", "net.ipv4.ip_forward", true),
            ("^net.ipv4.ip_(forward|default_ttl)$", "net.ipv4.ip_default_ttl", true),
            ("^net.ipv4.ip_(forward|default_ttl)$", "net.ipv4.ip_forwards", false),
            ("conf\\.(all|eth[0-9]+)\\.rp_filter", "net.ipv4.conf.eth12.rp_filter", true),
            ("conf\\.(all|eth[0-9]+)\\.rp_filter", "net.ipv4.conf.lo.rp_filter", false),
            ("^[^n]", "net", false),
            ("a{2,3}b", "xaab", true),
            ("a{2}b", "xab", false),
            ("(a*)*c", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false),
            ("", "x", true),
            ("[[:digit:]]x?$", "ab7", true),
            ("a|^b", "cb", false),
        ] {
            assert_eq!(is(pattern, text), Some(want), "{pattern} in {text}");
        }
        for none in ["(", "[a", "*", "a)", "a{x}"] {
            assert_eq!(is(none, "a)"), if none == "a)" { Some(true) } else { None }, "{none}");
        }
    }
}
