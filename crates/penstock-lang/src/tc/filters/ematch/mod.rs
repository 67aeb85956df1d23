//! Extended matches: `match EXPR` of basic, cgroup and flow.
//!
//! [`parse`] reads the expression with tc's own lexer and grammar and flattens its tree as tc does: a list of matches in
//! which a container names the place where its own sequence begins. [`text`] prints such a list.
//!
//! Follows: iproute2 6.1.0 `tc/m_ematch.c`, `tc/emp_ematch.l`, `tc/emp_ematch.y`; 2.6.35 knows `cmp meta nbyte u32` only.
//! Differs: usage texts are our own, and so is the JSON (a string `ematch`; tc writes bare text into its JSON).

mod canid;
mod cmp;
mod ipset;
mod ipt;
mod lexer;
mod meta;
mod nbyte;
mod u32;

use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::Args;
use crate::tc::num;
use lexer::{Lexer, Token};
use penstock_model::{Kernel, Options};

/// What stands between `(` and `)`: a word, or a quoted string.
#[derive(Clone, Debug, Default)]
struct Bstr {
    bytes: Vec<u8>,
    quoted: bool,
}

impl Bstr {
    fn is(&self, text: &str) -> bool {
        self.bytes == text.as_bytes()
    }
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
    /// `bstrtoul`: the number it begins with.
    fn number(&self) -> Option<u64> {
        num::strtoul(&self.text(), 0).map(|(n, _)| n).filter(|&n| n != u64::MAX)
    }
}

/// One kind of match: `struct ematch_util`.
struct Em {
    id: &'static str,
    /// Its number in `/etc/iproute2/ematch_map`.
    kind: u32,
    usage: &'static str,
    parse: fn(&Said<'_>, &[Bstr]) -> Result<Options, String>,
    print: fn(&Options, Kernel, &mut String),
}

static EMATCHES: &[&Em] = &[
    &canid::EMATCH,
    &cmp::EMATCH,
    &ipset::EMATCH,
    &ipt::EMATCH,
    &meta::EMATCH,
    &nbyte::EMATCH,
    &u32::EMATCH,
];

/// A container's number.
const CONTAINER: u32 = 0;
/// `TCF_EM_REL_AND`, `TCF_EM_REL_OR`, `TCF_EM_INVERT`.
const AND: u32 = 1;
const OR: u32 = 2;
const INVERT: u32 = 4;

const USAGE: &str = "\
Usage: EXPR
where: EXPR  := TERM [ { and | or } EXPR ]
       TERM  := [ not ] { KIND '(' ARG ... ')' | '(' EXPR ')' }
Example: cmp(u8 at 9 eq 6) and not (meta(priority eq 6) or u32(u16 53 0xffff at 20))
";

/// The words of the expression read so far, for tc's complaints.
struct Said<'a> {
    words: &'a [String],
    em: Option<&'a Em>,
}

impl Said<'_> {
    /// `em_parse_error`: the complaint, the words with the last one marked, the arguments with the one at `at` marked.
    fn error(&self, args: &[Bstr], at: Option<usize>, message: &str) -> String {
        let mut text = format!("{message}\n... ");
        for (i, word) in self.words.iter().enumerate() {
            text += &if i + 1 == self.words.len() { format!(">>{word}<< ") } else { format!("{word} ") };
        }
        text += "...\n";
        let printable =
            |b: &Bstr| -> String { b.bytes.iter().map(|&c| char::from(shown(c))).collect::<String>() };
        if let (false, Some(em)) = (args.is_empty(), self.em) {
            let list: Vec<String> = args
                .iter()
                .enumerate()
                .map(|(i, b)| if at == Some(i) { format!(">>{}<<", printable(b)) } else { printable(b) })
                .collect();
            text += &format!("... {}({})...\n", em.id, list.join(" "));
        }
        text + self.em.map_or(USAGE, |em| em.usage)
    }
}

/// What C's `isprint` keeps; a dot for the rest.
fn shown(c: u8) -> u8 {
    if (0x20..0x7f).contains(&c) { c } else { b'.' }
}

/// `parse_layer`, then a number: 0 link, 1 network, 2 transport. `None`: no layer.
fn layer(b: &Bstr) -> Option<u64> {
    match b.bytes.first() {
        Some(b'l') => Some(0),
        Some(b'n') => Some(1),
        Some(b't') => Some(2),
        _ => b.number(),
    }
}

/// `TCF_EM_OPND_EQ`, `_GT`, `_LT`.
fn operand(b: &Bstr) -> Option<u32> {
    ["eq", "gt", "lt"].iter().position(|word| b.is(word)).map(|n| n as u32)
}

fn operand_name(operand: u32) -> &'static str {
    ["eq", "gt", "lt"].get(operand as usize).copied().unwrap_or("")
}

/// A node of the expression: `struct ematch`.
struct Node {
    args: Vec<Bstr>,
    inverted: bool,
    relation: u32,
    child: Option<Vec<Node>>,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Token,
}

/// The grammar: `expr := match [ { and | or } expr ]`. An error inside of it ends everything.
impl Parser<'_> {
    fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        std::mem::replace(&mut self.ahead, next)
    }
    fn expr(&mut self) -> Option<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            let mut node = self.term()?;
            let relation = match self.ahead {
                Token::And => AND,
                Token::Or => OR,
                _ => 0,
            };
            node.relation = relation;
            nodes.push(node);
            if relation == 0 {
                return Some(nodes);
            }
            self.advance();
        }
    }
    fn term(&mut self) -> Option<Node> {
        let inverted = matches!(self.ahead, Token::Not);
        if inverted {
            self.advance();
        }
        match self.advance() {
            Token::Open => {
                let child = self.expr()?;
                // The closing bracket ends a term; what follows it is looked at before the term is known to end there.
                matches!(self.ahead, Token::Close).then(|| self.advance())?;
                Some(Node { args: Vec::new(), inverted, relation: 0, child: Some(child) })
            }
            Token::Word(kind) => {
                matches!(self.ahead, Token::Open).then(|| self.advance())?;
                let mut args = vec![kind];
                while let Token::Word(_) = self.ahead {
                    let Token::Word(arg) = self.advance() else { return None };
                    args.push(arg);
                }
                if args.len() < 2 {
                    return None;
                }
                matches!(self.ahead, Token::Close).then(|| self.advance())?;
                Some(Node { args, inverted, relation: 0, child: None })
            }
            _ => None,
        }
    }
}

/// A tree as a list: `flatten_tree`. Children stand behind their whole parent sequence.
fn flatten(nodes: Vec<Node>) -> Vec<(Node, Option<usize>)> {
    // tc appends the children of each node at the end of the list when it comes to the node, then goes into them.
    fn add(nodes: Vec<Node>, list: &mut Vec<(Node, Option<usize>)>) {
        let begin = list.len();
        list.extend(nodes.into_iter().map(|n| (n, None)));
        for at in begin..list.len() {
            if let Some(children) = list[at].0.child.take() {
                list[at].1 = Some(list.len());
                add(children, list);
            }
        }
    }
    let mut list = Vec::new();
    add(nodes, &mut list);
    list
}

/// `parse_ematch`: the words of an expression to a list of matches; `None` for no expression at all.
///
/// # Errors
/// tc's complaints, then `Illegal "ematch"`.
pub fn parse(args: &mut Args) -> Result<Option<Vec<Options>>, Failure> {
    let begin = args.mark();
    let rest: Vec<String> = args.rest().iter().map(|w| w.text.clone()).collect();
    let mut parser = Parser { lexer: Lexer::new(&rest), ahead: Token::End };
    parser.advance();
    let nodes = match parser.ahead {
        Token::End => Some(Vec::new()),
        _ => parser.expr(),
    };
    let used = parser.lexer.used();
    let illegal = |args: &mut Args, text: String| {
        args.back_to(begin + used.saturating_sub(1));
        let help = "e.g. match 'cmp(u16 at 2 layer network gt 100)'";
        Err(args.fail("Illegal \"ematch\"", 1, help).said_before(&text))
    };
    let Some(mut nodes) = nodes else {
        let said = Said { words: &rest[..used], em: None };
        let complaint = parser.lexer.complaint();
        return illegal(args, complaint + &said.error(&[], None, "Parse error: syntax error"));
    };
    parser.lexer.settle(&mut nodes);
    // tc puts back one word, whether it read ahead or not.
    let used = used.saturating_sub(1);
    let empty = nodes.is_empty();
    let mut list = Vec::new();
    for (node, child) in flatten(nodes) {
        let flags = node.relation | if node.inverted { INVERT } else { 0 };
        let head = |kind: u32| Options::new().with("kind", kind).with("flags", flags);
        if let Some(child) = child {
            list.push(head(CONTAINER).with("ref", child as u32));
            continue;
        }
        let id = node.args[0].text();
        let old = args.old();
        let known = EMATCHES.iter().find(|em| em.id == id && (!old || em.kind <= 4));
        let Some(em) = known else {
            return illegal(args, format!("Unknown ematch \"{id}\"\n"));
        };
        let said = Said { words: &rest[..used], em: Some(em) };
        match (em.parse)(&said, &node.args[1..]) {
            Ok(data) => list.push(data.iter().fold(head(em.kind), |mut o, (name, value)| {
                o.set(name, value.clone());
                o
            })),
            Err(text) => return illegal(args, text),
        }
    }
    args.back_to(begin + used);
    Ok((!empty).then_some(list))
}

/// `print_ematch`.
pub fn text(list: &[Options], kernel: Kernel) -> String {
    let mut text = String::new();
    if !list.is_empty() {
        text += "\n  ";
        // A list that does not end where it says is cut there, as tc cuts it.
        let _ = sequence(list, 0, 1, kernel, &mut text);
    }
    text
}

/// `print_ematch_seq`.
fn sequence(list: &[Options], start: usize, prefix: usize, kernel: Kernel, text: &mut String) -> Option<()> {
    for entry in list.get(start..)? {
        let flags = entry.u32("flags").unwrap_or(0);
        if flags & INVERT != 0 {
            text.push_str("NOT ");
        }
        let kind = entry.u32("kind").unwrap_or(0);
        if kind == CONTAINER {
            text.push_str("(\n");
            text.push_str(&"  ".repeat(prefix + 1));
            sequence(list, entry.u32("ref")? as usize, prefix + 1, kernel, text)?;
            text.push_str(&"  ".repeat(prefix));
            text.push_str(") ");
        } else {
            let em = EMATCHES.iter().find(|em| em.kind == kind)?;
            text.push_str(em.id);
            text.push('(');
            (em.print)(entry, kernel, text);
            text.push_str(")\n");
            if flags & (AND | OR) != 0 {
                text.push_str(&"  ".repeat(prefix));
            }
        }
        match flags & (AND | OR) {
            AND => text.push_str("AND "),
            OR => text.push_str("OR "),
            _ => return Some(()),
        }
    }
    None
}

/// Prints the matches among a filter's options.
pub fn print(options: &Options, out: &mut Out) {
    let list = options.list("ematches");
    if list.is_empty() {
        return;
    }
    let text = text(list, out.kernel());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    out.string("ematch", &words, format_args!("{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::args::Args;
    use crate::tc::{Env, Link};
    use crate::token::Word;

    /// The list of matches as printed, and the words left.
    fn read(words: &[&str]) -> Result<(String, Vec<String>), String> {
        let words: Vec<Word> =
            words.iter().map(|text| Word { text: (*text).to_owned(), line: 1, column: 1, len: 1 }).collect();
        let env =
            Env { kernel: Kernel::V6_12, device: &|_| Some(Link::default()), objects: &crate::tc::NoObjects };
        let mut args = Args::new(&words, &env);
        let list = parse(&mut args).map_err(|f| f.stderr)?.unwrap_or_default();
        let left = args.rest().iter().map(|w| w.text.clone()).collect();
        Ok((text(&list, Kernel::V6_12), left))
    }

    #[test]
    fn nested_expressions_come_back_as_tc_prints_them() {
        // tc 6.1.0 on 6.12.
        let expression = "not (cmp(u8 at 9 eq 6) and meta(priority eq 6)) or u32(u16 53 0xffff at 20)";
        let (text, left) = read(&[expression, "classid", "1:1"]).unwrap();
        let want = "\n  NOT (\n    cmp(u8 at 9 layer 1 eq 6)\n    AND meta(priority eq 6)\n  ) OR u32(00350000/ffff0000 at 20)\n";
        assert_eq!((text.as_str(), left.len()), (want, 2));
    }

    #[test]
    fn one_word_is_put_back_even_where_none_was_read_ahead() {
        let (_, left) = read(&["cmp(u8 at 0 eq 1)"]).unwrap();
        assert_eq!(left, ["cmp(u8 at 0 eq 1)"]);
    }

    #[test]
    fn complaints_mark_the_word_and_the_argument() {
        let complaint = read(&["cmp(u8 at x eq 1)", "classid", "1:1"]).unwrap_err();
        let lines: Vec<&str> = complaint.lines().take(3).collect();
        let want = [
            "cmp: invalid offset, must be numeric",
            "... >>cmp(u8 at x eq 1)<< ...",
            "... cmp(u8 at >>x<< eq 1)...",
        ];
        assert_eq!(lines, want);
        assert!(complaint.ends_with("Illegal \"ematch\"\n"));
        let complaint = read(&["cmp(u8 at 0 eq 1)", "and", "classid", "1:1"]).unwrap_err();
        let lines: Vec<&str> = complaint.lines().take(2).collect();
        assert_eq!(lines, ["Parse error: syntax error", "... cmp(u8 at 0 eq 1) and classid >>1:1<< ..."]);
        assert_eq!(read(&["text(a)", "x"]).unwrap_err(), "Unknown ematch \"text\"\nIllegal \"ematch\"\n");
    }

    #[test]
    fn strings_share_one_buffer() {
        let (text, _) = read(&["nbyte(\"ab\\x63\\144\" at 1) and nbyte(\"x\" at 2)", "z"]).unwrap();
        // The first keeps its length, but the buffer was written over.
        assert!(
            text.starts_with("\n  nbyte(78 62 63 64 \"xbcd\" at 1 layer 1)\n  AND nbyte(78 \"x\" at 2"),
            "{text}"
        );
    }
}
