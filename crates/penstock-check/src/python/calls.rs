//! What Python's own functions and libraries give, as far as scripts that shape traffic use them.

use super::eval::{Python, Stop};
use super::value::{Object, PLACE, Text, TooLarge, UNKNOWN, Value, formatted};
use std::cell::RefCell;
use std::rc::Rc;

type Named = [(String, Value)];

fn named<'a>(all: &'a Named, name: &str) -> Option<&'a Value> {
    all.iter().find(|n| n.0 == name).map(|n| &n.1)
}

/// About how many bytes a method makes.
pub fn cost(of: &Value, name: &str, args: &[Value]) -> u64 {
    let own = of.bytes();
    match (of, name) {
        (Value::Str(_), "join") => {
            let all = args.first().and_then(Value::each).unwrap_or_default();
            all.iter().fold(0_u64, |sum, v| sum.saturating_add(own).saturating_add(v.bytes() + 1))
        }
        (Value::Str(t), "replace") => {
            let with = args.get(1).map_or(0, Value::bytes);
            let from = args.first().map_or(String::new(), Value::show);
            let places = t.text.matches(&from).count() as u64;
            own.saturating_add(places.saturating_mul(with))
        }
        (Value::Str(t), "format") => {
            let most = args.iter().map(Value::bytes).max().unwrap_or(0);
            own.saturating_add((t.text.matches('{').count() as u64).saturating_mul(most.max(PLACE)))
        }
        (Value::Str(_), "split" | "splitlines") => own.saturating_mul(PLACE / 2),
        (Value::List(_), "extend") => args.first().map_or(0, Value::bytes),
        (Value::List(_), "append" | "insert") => PLACE,
        _ => own,
    }
}

/// A method of a value's.
///
/// # Errors
/// A format asks for more than it may.
pub fn method(of: &Value, name: &str, args: &[Value], by_name: &Named) -> Result<Value, TooLarge> {
    Ok(match of {
        Value::Str(t) => of_string(t, name, args, by_name)?,
        Value::List(l) => {
            match (name, args) {
                ("append", [v]) => l.borrow_mut().push(v.clone()),
                ("extend", [v]) => {
                    let more = v.each().unwrap_or_default();
                    l.borrow_mut().extend(more);
                }
                ("insert", [Value::Int(n), v]) => {
                    let mut l = l.borrow_mut();
                    let at = (*n).clamp(0, l.len() as i64) as usize;
                    l.insert(at, v.clone());
                }
                ("copy", _) => return Ok(Value::list(l.borrow().clone())),
                ("pop", _) => return Ok(l.borrow_mut().pop().unwrap_or(Value::Unknown)),
                _ => return Ok(Value::Unknown),
            }
            Value::None
        }
        Value::Dict(d) => match name {
            "items" => {
                let pair = |(k, v): &(Value, Value)| Value::list(vec![k.clone(), v.clone()]);
                Value::list(d.borrow().iter().map(pair).collect())
            }
            "keys" => Value::list(d.borrow().iter().map(|p| p.0.clone()).collect()),
            "values" => Value::list(d.borrow().iter().map(|p| p.1.clone()).collect()),
            "get" => {
                let key = args.first().cloned().unwrap_or(Value::None);
                let found = d.borrow().iter().find(|p| p.0.same(&key) == Some(true)).map(|p| p.1.clone());
                found.or(args.get(1).cloned()).unwrap_or(Value::None)
            }
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    })
}

fn of_string(t: &Text, name: &str, args: &[Value], by_name: &Named) -> Result<Value, TooLarge> {
    let text = &*t.text;
    let at = |s: String| Value::at(s, t.line);
    let first = args.first().map(Value::show);
    Ok(match (name, first.as_deref()) {
        ("format", _) => {
            let own = text.split_whitespace().filter(|w| !w.contains('{')).count();
            let all = args.iter().chain(by_name.iter().map(|n| &n.1));
            Value::at(format(text, args, by_name)?, all.fold(t.line, |line, v| v.line_among(own, line)))
        }
        ("split", None) => Value::list(text.split_whitespace().map(|w| Value::at(w, t.line)).collect()),
        ("split", Some(by)) if !by.is_empty() => {
            Value::list(text.split(by).map(|w| Value::at(w, t.line)).collect())
        }
        ("splitlines", _) => Value::list(lines(t)),
        ("strip", _) => stripped(t),
        ("rstrip", _) => at(text.trim_end().to_owned()),
        ("lstrip", _) => at(text.trim_start().to_owned()),
        ("lower", _) => at(text.to_lowercase()),
        ("upper", _) => at(text.to_uppercase()),
        ("encode" | "decode", _) => at(text.to_owned()),
        ("replace", Some(from)) => at(text.replace(from, &args.get(1).map_or(String::new(), Value::show))),
        ("startswith", Some(with)) => Value::Bool(text.starts_with(with)),
        ("endswith", Some(with)) => Value::Bool(text.ends_with(with)),
        ("isdigit", _) => Value::Bool(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
        ("join", _) => {
            let all = args.first().and_then(Value::each).unwrap_or_else(|| vec![Value::Unknown]);
            let joined = all.iter().map(Value::show).collect::<Vec<_>>().join(text);
            let line = all.iter().map(Value::line).find(|l| *l > 0).unwrap_or(t.line);
            Value::at(joined, line)
        }
        _ => Value::Unknown,
    })
}

/// Lines of a text, each with its own number.
fn lines(t: &Text) -> Vec<Value> {
    let number = |at: usize| if t.line == 0 { 0 } else { t.line + at as u32 };
    t.text.lines().enumerate().map(|(at, l)| Value::at(l, number(at))).collect()
}

/// Without blanks around; what begins on a later line stands there.
fn stripped(t: &Text) -> Value {
    let cut = t.text.len() - t.text.trim_start().len();
    let down = t.text[..cut].matches('\n').count() as u32;
    Value::at(t.text.trim(), if t.line == 0 { 0 } else { t.line + down })
}

/// `str.format`.
fn format(template: &str, args: &[Value], by_name: &Named) -> Result<String, TooLarge> {
    let mut out = String::new();
    let mut next = 0;
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out += &rest[..at];
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if rest.starts_with(brace) {
            out += brace;
            rest = &rest[1..];
            continue;
        }
        let Some(end) = rest.find('}').filter(|_| brace == "{") else { continue };
        let (field, spec) = rest[..end].split_once(':').unwrap_or((&rest[..end], ""));
        rest = &rest[end + 1..];
        let value = match field.parse::<usize>() {
            Ok(n) => args.get(n),
            Err(_) if field.is_empty() => {
                next += 1;
                args.get(next - 1)
            }
            Err(_) => named(by_name, field),
        };
        out += &formatted(value.unwrap_or(&Value::Unknown), spec)?;
    }
    Ok(out + rest)
}

/// A call into a library, or of something built in.
///
/// # Errors
/// It raises, or ends the script.
pub fn library(
    py: &mut Python<'_>,
    path: &str,
    args: &[Value],
    by_name: &Named,
    line: u32,
) -> Result<Value, Stop> {
    let first = args.first();
    let last = path.rsplit('.').next().unwrap_or(path);
    let number = |v: Option<&Value>| match v {
        Some(Value::Str(t)) => t.text.trim().parse::<f64>().ok(),
        Some(v) => v.number(),
        None => None,
    };
    Ok(match path {
        "str" => match first {
            Some(Value::Str(t)) => Value::Str(t.clone()),
            Some(v) => Value::str(v.show()),
            None => Value::str(""),
        },
        "int" | "round" if by_name.is_empty() && args.len() < 2 => {
            let n = number(first);
            n.map_or(Value::Unknown, |n| Value::Int(if path == "int" { n.trunc() } else { n.round() } as i64))
        }
        "float" => number(first).map_or(Value::Unknown, Value::Float),
        "len" => first.and_then(Value::each).map_or(Value::Unknown, |all| Value::Int(all.len() as i64)),
        "hex" => number(first).map_or(Value::Unknown, |n| Value::str(format!("{:#x}", n as i64))),
        "format" => {
            let spec = args.get(1).map_or(String::new(), Value::show);
            match first {
                Some(v) => Value::str(formatted(v, &spec)?),
                None => Value::Unknown,
            }
        }
        "list" | "tuple" | "sorted" | "set" => {
            first.and_then(Value::each).map_or(Value::list(Vec::new()), Value::list)
        }
        // `map(str, words)`.
        "map" => match (first, args.get(1).and_then(Value::each)) {
            (Some(Value::Lib(of)), Some(all)) if !of.contains('.') && args.len() == 2 => {
                let one = |v: Value| library(py, of, std::slice::from_ref(&v), &[], line);
                Value::list(all.into_iter().map(one).collect::<Result<_, _>>()?)
            }
            _ => Value::Unknown,
        },
        // `dict(a=1)`, `dict(other, a=1)`.
        "dict" => {
            let mut all = match first {
                Some(Value::Dict(d)) => d.borrow().clone(),
                None => Vec::new(),
                Some(_) => return Ok(Value::Unknown),
            };
            for (name, value) in by_name {
                super::operate::put(&mut all, Value::str(name.as_str()), value.clone());
            }
            let dict = Value::Dict(Rc::new(RefCell::new(all)));
            Python::keeps(&dict)?;
            dict
        }
        "min" | "max" => {
            let all =
                if args.len() == 1 { first.and_then(Value::each).unwrap_or_default() } else { args.to_vec() };
            let better = |a: &Value, b: &Value| match (a.number(), b.number()) {
                (Some(a), Some(b)) => (a < b) == (path == "min"),
                _ => true,
            };
            all.into_iter().reduce(|a, b| if better(&a, &b) { a } else { b }).unwrap_or(Value::Unknown)
        }
        "sum" => {
            let all = first.and_then(Value::each).unwrap_or_default();
            let whole = all.iter().all(|v| matches!(v, Value::Int(_)));
            let n: f64 = all.iter().filter_map(Value::number).sum();
            if whole { Value::Int(n as i64) } else { Value::Float(n) }
        }
        "range" => {
            let n = |at: usize| number(args.get(at)).map(|n| n as i64);
            let (from, to, by) = match args.len() {
                1 => (Some(0), n(0), Some(1)),
                2 => (n(0), n(1), Some(1)),
                _ => (n(0), n(1), n(2)),
            };
            let (Some(from), Some(to), Some(by @ 1..)) = (from, to, by) else { return Ok(Value::Unknown) };
            let count = to.saturating_sub(from).max(0) as u64 / by as u64;
            py.makes(count.saturating_mul(PLACE))?;
            Value::list((from..to).step_by(by as usize).map(Value::Int).collect())
        }
        "enumerate" => {
            let from =
                number(args.get(1)).or(named(by_name, "start").and_then(Value::number)).unwrap_or(0.0) as i64;
            let pair =
                |(n, v): (usize, Value)| Value::list(vec![Value::Int(from.saturating_add(n as i64)), v]);
            let all = first.and_then(Value::each);
            all.map_or(Value::Unknown, |all| Value::list(all.into_iter().enumerate().map(pair).collect()))
        }
        "zip" => {
            let all: Option<Vec<Vec<Value>>> = args.iter().map(Value::each).collect();
            let Some(all) = all else { return Ok(Value::Unknown) };
            let len = all.iter().map(Vec::len).min().unwrap_or(0);
            Value::list((0..len).map(|n| Value::list(all.iter().map(|l| l[n].clone()).collect())).collect())
        }
        "print" | "time.sleep" | "isinstance" => Value::None,
        "exit" | "quit" | "sys.exit" | "os._exit" => return Err(Stop::Exit),
        "os.geteuid" | "os.getuid" | "geteuid" | "getuid" => Value::Int(0),
        "os.environ.get" | "os.getenv" | "getenv" => args.get(1).cloned().unwrap_or(Value::None),
        "shutil.which" => Value::str(format!("/usr/sbin/{}", first.map_or(String::new(), Value::show))),
        "shlex.split" => words_of(first),
        "shlex.quote" => first.cloned().unwrap_or(Value::Unknown),
        "shlex.join" => of_string(&Text { text: " ".into(), line }, "join", args, by_name)?,
        "textwrap.dedent" | "dedent" => first.cloned().unwrap_or(Value::Unknown),
        "argparse.ArgumentParser" | "ArgumentParser" | "argparse.ArgumentParser.ArgumentParser" => {
            object(vec![(OPTIONS, Value::list(Vec::new()))])
        }
        _ => match last {
            "system" | "popen" | "getoutput" | "getstatusoutput" if first.is_some() => {
                let (status, out) = run(py, first, true, line)?;
                match last {
                    "system" => Value::Int(i64::from(status)),
                    "getoutput" => Value::str(out.trim_end()),
                    "getstatusoutput" => {
                        Value::list(vec![Value::Int(i64::from(status)), Value::str(out.trim_end())])
                    }
                    _ => object(vec![("out", Value::str(out))]),
                }
            }
            // Its words are its arguments.
            "create_subprocess_exec" if first.is_some() => {
                run(py, Some(&Value::list(args.to_vec())), false, line)?;
                object(vec![("returncode", Value::Int(0))])
            }
            "run" | "call" | "check_call" | "check_output" | "Popen" | "create_subprocess_shell"
                if path.contains("subprocess") || path == last =>
            {
                let given = first.or(named(by_name, "args"));
                let shell =
                    named(by_name, "shell").and_then(Value::truth) == Some(true) || last.ends_with("_shell");
                let (status, out) = run(py, given, shell, line)?;
                let must =
                    last.starts_with("check") || named(by_name, "check").and_then(Value::truth) == Some(true);
                if must && status != 0 {
                    return Err(Stop::Raised);
                }
                match last {
                    "check_output" => Value::str(out),
                    "call" | "check_call" => Value::Int(i64::from(status)),
                    _ => object(vec![
                        ("returncode", Value::Int(i64::from(status))),
                        ("stdout", Value::str(out)),
                        ("stderr", Value::str("")),
                    ]),
                }
            }
            "exit" if path.starts_with("sys") => return Err(Stop::Exit),
            _ => Value::Unknown,
        },
    })
}

/// Methods of libraries that carry out a command on another machine: Mininet, Fabric, Paramiko, the Docker SDK, Netmiko, pexpect and their like.
const ELSEWHERE: [&str; 18] = [
    "cmd",
    "cmdPrint",
    "cmds",
    "pexec",
    "sendCmd",
    "sudo",
    "run",
    "local",
    "exec_command",
    "exec_run",
    "send_command",
    "sendline",
    "execute",
    "run_command",
    "execute_command",
    "command",
    "shell",
    "ssh",
];

/// A call of what nobody knows, which carries out its first argument if that is a network command.
///
/// # Errors
/// The command ends the script.
pub fn elsewhere(py: &mut Python<'_>, method: &str, args: &[Value], line: u32) -> Result<Value, Stop> {
    let words = match args.first() {
        Some(Value::Str(t)) => t.text.to_string(),
        Some(Value::List(l)) => l.borrow().iter().map(Value::show).collect::<Vec<_>>().join(" "),
        _ => return Ok(Value::Unknown),
    };
    if ELSEWHERE.contains(&method) && crate::holders::is_command(&words) {
        run(py, args.first(), true, line)?;
    }
    Ok(Value::Unknown)
}

/// The attribute that makes an object a reader of options: what it was told of.
pub const OPTIONS: &str = "options of a parser";

/// `add_argument` and `parse_args`: options have their defaults, and what asks for a device has the one in question.
pub fn options(
    py: &Python<'_>,
    parser: &Rc<RefCell<Object>>,
    name: &str,
    args: &[Value],
    by_name: &Named,
) -> Value {
    let held = match parser.borrow().attrs.get(OPTIONS) {
        Some(Value::List(l)) => Rc::clone(l),
        _ => return Value::Unknown,
    };
    match name {
        "add_argument" => {
            let names: Vec<String> = args.iter().map(Value::show).collect();
            let long =
                names.iter().find(|n| n.starts_with("--")).or(names.first()).cloned().unwrap_or_default();
            let dest = named(by_name, "dest").map_or(long, Value::show);
            let dest = dest.trim_start_matches('-').replace('-', "_");
            let flag = named(by_name, "action").is_some_and(|a| a.show() == "store_true");
            let device =
                ["dev", "if", "iface", "interface", "nic", "device", "intf"].contains(&dest.as_str());
            let value = match named(by_name, "default") {
                Some(value) => value.clone(),
                None if flag => Value::Bool(false),
                None if device => Value::str(py.dev.as_str()),
                None => Value::Unknown,
            };
            held.borrow_mut().push(Value::list(vec![Value::str(dest), value]));
            Value::None
        }
        "parse_args" => {
            let pairs: Vec<Vec<Value>> = held.borrow().iter().filter_map(Value::each).collect();
            let attrs = pairs.into_iter().map(|p| (p[0].show(), p[1].clone())).collect();
            Value::Object(Rc::new(RefCell::new(Object { class: None, attrs })))
        }
        "add_argument_group" | "add_mutually_exclusive_group" => Value::Object(Rc::clone(parser)),
        _ => Value::Unknown,
    }
}

fn object(attrs: Vec<(&str, Value)>) -> Value {
    let attrs = attrs.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
    Value::Object(Rc::new(RefCell::new(Object { class: None, attrs })))
}

/// `shlex.split`.
fn words_of(text: Option<&Value>) -> Value {
    let Some(Value::Str(t)) = text else { return Value::Unknown };
    let mut words = Vec::new();
    let (mut word, mut quote, mut any) = (String::new(), None, false);
    for c in t.text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => (quote, any) = (Some(c), true),
            None if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(Value::at(std::mem::take(&mut word), t.line));
                }
                any = false;
            }
            None => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(Value::at(word, t.line));
    }
    Value::list(words)
}

/// Runs a command; one that is not wholly known is left out and taken to have worked.
fn run(py: &mut Python<'_>, what: Option<&Value>, shell: bool, line: u32) -> Result<(i32, String), Stop> {
    let (values, shell) = match what {
        Some(Value::List(l)) => (l.borrow().clone(), shell),
        Some(one @ Value::Str(_)) => (vec![one.clone()], shell),
        _ => (vec![Value::Unknown], shell),
    };
    // The first word may stand in a function that all commands go through.
    let place = values.iter().skip(1).chain(values.first()).map(Value::line).find(|l| *l > 0).unwrap_or(line);
    let words: Vec<String> = values.iter().map(Value::show).collect();
    let unknown = words.iter().any(|w| w.contains(UNKNOWN));
    let symbol = py.runs.unknown().map(str::to_owned);
    let words = match (symbol, words.first()) {
        (_, None) => words,
        (Some(symbol), Some(first)) if unknown && !first.starts_with(UNKNOWN) => {
            words.iter().map(|w| w.replace(UNKNOWN, &symbol)).collect()
        }
        (_, Some(_)) if unknown => Vec::new(),
        _ => words,
    };
    if words.is_empty() {
        py.runs.left_out(place);
        return Ok((0, String::new()));
    }
    py.gives(place)?;
    Ok(if shell { py.runs.shell(&words[0], place) } else { py.runs.words(words, place) })
}
