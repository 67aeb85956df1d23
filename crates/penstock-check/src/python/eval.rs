//! Carries Python's statements out, as far as they lead to commands.

use super::operate::{attribute, cost, index, operate, put, slice};
use super::tree::{Arg, Def, Expr, Stmt, parse};
use super::value::{Class, Object, TooLarge, Value, WIDTH, formatted};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Who carries out the commands.
pub trait Runs {
    /// Words of one program, with the line they stand on. Status, standard output.
    fn words(&mut self, words: Vec<String>, line: u32) -> (i32, String);
    /// A line for a shell. Status, standard output.
    fn shell(&mut self, text: &str, line: u32) -> (i32, String);
    /// A command whose words are not wholly known.
    fn left_out(&mut self, line: u32);
    /// What stands for the unknown in a command that is known in part; `None`: it is left out.
    fn unknown(&self) -> Option<&str> {
        None
    }
}

/// How a block ended.
enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
    /// An exception.
    Raised,
    /// The script ends.
    Exit,
    /// A limit is met.
    Limit(String),
}

/// Why an expression has no value.
pub enum Stop {
    Raised,
    Exit,
    /// A limit is met.
    Limit(String),
}

impl From<TooLarge> for Stop {
    fn from(_: TooLarge) -> Stop {
        Stop::Limit(format!("width of a format: {WIDTH}"))
    }
}

/// Statements carried out, and values looked at.
const STEPS: u32 = 2_000_000;

/// Bytes of all strings and lists that are made.
const BYTES: u64 = 256 << 20;

/// Functions within each other; Python's own limit is 1,000.
const FUNCTIONS: usize = 60;

/// Expressions and blocks within each other, while they are carried out.
const WITHIN: u32 = 800;

/// Commands given to other programs.
const COMMANDS: u32 = 20_000;

impl From<Stop> for Flow {
    fn from(stop: Stop) -> Flow {
        match stop {
            Stop::Raised => Flow::Raised,
            Stop::Exit => Flow::Exit,
            Stop::Limit(limit) => Flow::Limit(limit),
        }
    }
}

type Eval = Result<Value, Stop>;
type Names = BTreeMap<String, Value>;

/// The interpreter.
pub struct Python<'a> {
    pub runs: &'a mut dyn Runs,
    pub args: Vec<String>,
    /// The device in question, for arguments that ask for one.
    pub dev: String,
    globals: Names,
    locals: Vec<Names>,
    /// Steps that are left.
    left: u32,
    /// Bytes that may still be made.
    bytes: u64,
    /// Commands that may still be given.
    commands: u32,
    /// How deep it stands in expressions and blocks.
    within: u32,
    /// The line of the last command.
    line: u32,
    /// Functions that were called, by their addresses.
    entered: BTreeSet<usize>,
    /// Whether all that was given was given by functions that nobody calls.
    pub uncalled: bool,
}

impl<'a> Python<'a> {
    /// An interpreter.
    pub fn new(runs: &'a mut dyn Runs, args: Vec<String>, dev: String) -> Python<'a> {
        let mut globals = Names::new();
        globals.insert("__name__".to_owned(), Value::str("__main__"));
        Python {
            runs,
            args,
            dev,
            globals,
            locals: Vec::new(),
            left: STEPS,
            bytes: BYTES,
            commands: COMMANDS,
            within: 0,
            line: 0,
            entered: BTreeSet::new(),
            uncalled: false,
        }
    }
    /// Runs a text.
    ///
    /// # Errors
    /// The limit it was stopped at, or what Python says of a text it cannot read.
    pub fn run(&mut self, text: &str) -> Result<(), String> {
        let body = parse(&super::read::tokens(text))?;
        let mut flow = self.block(&body);
        // A module that only defines functions is read by calling them.
        if self.line == 0 && !matches!(flow, Flow::Limit(_)) {
            flow = self.call_all(&body);
            self.uncalled = self.line > 0;
        }
        match flow {
            Flow::Limit(limit) => {
                let place = if self.line > 0 { format!("line {}: ", self.line) } else { String::new() };
                Err(format!("{place}stopped at a limit of Python here: {limit}"))
            }
            _ => Ok(()),
        }
    }

    /// Calls each function and method that nobody called, with unknown arguments, in the text's order.
    fn call_all(&mut self, body: &[Stmt]) -> Flow {
        let mut todo: Vec<(Rc<Def>, Option<Value>)> = Vec::new();
        for stmt in body {
            if let Stmt::Def(def) = stmt {
                todo.push((Rc::clone(def), None));
            }
        }
        let classes: Vec<_> = self
            .globals
            .values()
            .filter_map(|v| match v {
                Value::Class(class) => Some(Rc::clone(class)),
                _ => None,
            })
            .collect();
        for class in classes {
            let object = Object { class: Some(Rc::clone(&class)), ..Object::default() };
            let own = Value::Object(Rc::new(RefCell::new(object)));
            let defs = |first: bool| {
                class.attrs.iter().filter(move |a| (a.0 == "__init__") == first).filter_map(|a| match a.1 {
                    Value::Def(def) => Some(Rc::clone(def)),
                    _ => None,
                })
            };
            todo.extend(defs(true).chain(defs(false)).map(|def| (def, Some(own.clone()))));
        }
        for (def, own) in todo {
            if self.entered.contains(&(Rc::as_ptr(&def) as usize)) {
                continue;
            }
            if let Err(Stop::Limit(limit)) = self.enter(&def, own, Vec::new(), Vec::new()) {
                return Flow::Limit(limit);
            }
        }
        Flow::Next
    }

    /// Takes a step.
    fn steps(&mut self) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Stop::Limit(format!("steps: {STEPS}")))?;
        Ok(())
    }
    /// Something of so many bytes is to be made.
    pub(super) fn makes(&mut self, bytes: u64) -> Result<(), Stop> {
        let limit = || Stop::Limit(format!("bytes of strings and lists made: {BYTES}"));
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(limit)?;
        Ok(())
    }
    /// A command is to be given.
    pub(super) fn gives(&mut self, line: u32) -> Result<(), Stop> {
        self.line = line;
        let limit = || Stop::Limit(format!("commands given: {COMMANDS}"));
        self.commands = self.commands.checked_sub(1).ok_or_else(limit)?;
        Ok(())
    }
    /// A value is kept in another.
    pub(super) fn keeps(value: &Value) -> Result<(), Stop> {
        let limit = format!("values within each other: {}", super::value::DEPTH);
        if value.is_deep() { Err(Stop::Limit(limit)) } else { Ok(()) }
    }

    fn get(&self, name: &str) -> Value {
        let local = self.locals.last().and_then(|l| l.get(name));
        match local.or_else(|| self.globals.get(name)) {
            Some(value) => value.clone(),
            None => Value::Lib(name.to_owned()),
        }
    }
    fn set(&mut self, name: &str, value: Value) {
        self.locals.last_mut().unwrap_or(&mut self.globals).insert(name.to_owned(), value);
    }

    fn block(&mut self, body: &[Stmt]) -> Flow {
        for stmt in body {
            match self.stmt(stmt) {
                Flow::Next => {}
                other => return other,
            }
        }
        Flow::Next
    }
    fn value(&mut self, expr: &Expr) -> Result<Value, Flow> {
        self.eval(expr).map_err(Flow::from)
    }
    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        if let Err(stop) = self.steps().and_then(|()| self.deeper()) {
            return stop.into();
        }
        let flow = match self.carry_out(stmt) {
            Ok(flow) | Err(flow) => flow,
        };
        self.within -= 1;
        flow
    }
    /// One level down. Whoever goes comes back, except where the script ends.
    fn deeper(&mut self) -> Result<(), Stop> {
        if self.within >= WITHIN {
            return Err(Stop::Limit(format!(
                "RecursionError: maximum recursion depth exceeded (expressions and blocks within each other: {WITHIN})"
            )));
        }
        self.within += 1;
        Ok(())
    }
    fn carry_out(&mut self, stmt: &Stmt) -> Result<Flow, Flow> {
        match stmt {
            Stmt::Expr(e) => {
                self.value(e)?;
            }
            Stmt::Assign(to, e) => {
                let value = self.value(e)?;
                for target in to {
                    self.assign(target, value.clone())?;
                }
            }
            Stmt::Augment(to, op, e) => {
                let joined = Expr::Op(Box::new(to.clone()), op, Box::new(e.clone()));
                let value = self.value(&joined)?;
                self.assign(to, value)?;
            }
            Stmt::If(arms, rest) => {
                for (at, (condition, body)) in arms.iter().enumerate() {
                    let truth = self.value(condition)?.truth();
                    // Where nobody can tell, what ends the script is taken not to happen.
                    let other = arms.len() > at + 1 || !rest.is_empty();
                    let taken = truth.unwrap_or_else(|| !(gives_up(body) || other && gives_up(rest)));
                    if taken {
                        return Ok(self.block(body));
                    }
                }
                return Ok(self.block(rest));
            }
            Stmt::For(names, over, body) => {
                // Of what is unknown there is one, which is unknown too.
                let over = self.value(over)?;
                let all = match over.each() {
                    Some(all) => all,
                    None if matches!(over, Value::Unknown) => vec![Value::Unknown],
                    None => return Ok(Flow::Next),
                };
                for value in all {
                    self.steps()?;
                    self.assign(names, value)?;
                    match self.block(body) {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        other => return Ok(other),
                    }
                }
            }
            Stmt::While(condition, body) => {
                // A loop that waits or serves is gone through once.
                let mut turns = 0_u32;
                loop {
                    self.steps()?;
                    let truth = self.value(condition)?.truth();
                    let endless = matches!(condition, Expr::Name(n) if n == "True") || truth.is_none();
                    if truth == Some(false) || endless && turns > 0 {
                        break;
                    }
                    turns += 1;
                    match self.block(body) {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        other => return Ok(other),
                    }
                }
            }
            Stmt::Def(def) => self.set(&def.name, Value::Def(Rc::clone(def))),
            Stmt::Class(name, body, fields) => {
                self.locals.push(Names::new());
                let flow = self.block(body);
                let attrs = self.locals.pop().unwrap_or_default();
                self.set(name, Value::Class(Rc::new(Class { attrs, fields: fields.clone() })));
                if let Flow::Exit | Flow::Limit(_) = flow {
                    return Ok(flow);
                }
            }
            Stmt::Try(body, rescue, last) => {
                let mut flow = self.block(body);
                if let Flow::Raised = flow {
                    flow = if rescue.is_empty() { Flow::Raised } else { self.block(rescue) };
                }
                if let Flow::Limit(_) = flow {
                    return Ok(flow);
                }
                match (flow, self.block(last)) {
                    (Flow::Next, after) => return Ok(after),
                    (flow, _) => return Ok(flow),
                }
            }
            Stmt::With(items, body) => {
                for (what, name) in items {
                    let value = self.value(what)?;
                    if let Some(name) = name {
                        self.assign(name, value)?;
                    }
                }
                return Ok(self.block(body));
            }
            Stmt::Return(e) => {
                let value = match e {
                    Some(e) => self.value(e)?,
                    None => Value::None,
                };
                return Ok(Flow::Return(value));
            }
            Stmt::Raise => return Ok(Flow::Raised),
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Import(path, name) => self.set(name, Value::Lib(path.clone())),
            Stmt::Pass => {}
        }
        Ok(Flow::Next)
    }
    fn assign(&mut self, to: &Expr, value: Value) -> Result<(), Flow> {
        match to {
            Expr::Name(name) => self.set(name, value),
            Expr::Attr(of, name) => {
                if let Value::Object(object) = self.value(of)? {
                    Self::keeps(&value)?;
                    object.borrow_mut().attrs.insert(name.clone(), value);
                }
            }
            Expr::Index(of, key) => {
                let key = self.value(key)?;
                Self::keeps(&value)?;
                self.makes(2 * super::value::PLACE)?;
                match self.value(of)? {
                    Value::Dict(d) => put(&mut d.borrow_mut(), key, value),
                    Value::List(l) => {
                        if let (Value::Int(n), mut l) = (key, l.borrow_mut())
                            && let Some(place) = l.get_mut(n as usize)
                        {
                            *place = value;
                        }
                    }
                    _ => {}
                }
            }
            Expr::List(names) => {
                let all = value.each().unwrap_or_default();
                for (at, name) in names.iter().enumerate() {
                    self.assign(name, all.get(at).cloned().unwrap_or(Value::Unknown))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn eval(&mut self, expr: &Expr) -> Eval {
        self.steps()?;
        self.deeper()?;
        let value = self.eval_here(expr)?;
        self.within -= 1;
        Ok(value)
    }
    fn eval_here(&mut self, expr: &Expr) -> Eval {
        Ok(match expr {
            Expr::Str(text, false, line) => Value::at(text.as_str(), *line),
            Expr::Str(text, true, line) => {
                let (text, line) = self.interpolate(text, *line)?;
                Value::at(text, line)
            }
            Expr::Int(n) => Value::Int(*n),
            Expr::Float(n) => Value::Float(*n),
            Expr::Name(name) => match name.as_str() {
                "True" => Value::Bool(true),
                "False" => Value::Bool(false),
                "None" => Value::None,
                _ => self.get(name),
            },
            Expr::Attr(of, name) => {
                let of = self.eval(of)?;
                match attribute(&of, name) {
                    Value::Lib(path) if path == "sys.argv" && !self.args.is_empty() => {
                        let all = std::iter::once("script").chain(self.args.iter().map(String::as_str));
                        Value::list(all.map(Value::str).collect())
                    }
                    value => value,
                }
            }
            Expr::Call(f, args, line) => return self.call(f, args, *line),
            Expr::Index(of, key) => {
                let (of, key) = (self.eval(of)?, self.eval(key)?);
                // What a script asks first on its command line is mostly the device.
                match (&of, &key) {
                    (Value::Lib(path), Value::Int(1)) if path == "sys.argv" => Value::str(self.dev.as_str()),
                    _ => index(&of, &key),
                }
            }
            Expr::Slice(of, from, to) => {
                let of = self.eval(of)?;
                let mut end = |e: &Option<Box<Expr>>| -> Result<Option<i64>, Stop> {
                    Ok(match e {
                        Some(e) => match self.eval(e)? {
                            Value::Int(n) => Some(n),
                            _ => None,
                        },
                        None => None,
                    })
                };
                let (from, to) = (end(from)?, end(to)?);
                slice(&of, from, to)
            }
            Expr::List(items) => {
                let items = self.items(items)?;
                self.makes(items.len() as u64 * super::value::PLACE)?;
                let list = Value::list(items);
                Self::keeps(&list)?;
                list
            }
            Expr::Dict(pairs) => {
                let mut all = Vec::new();
                for (key, value) in pairs {
                    let (key, value) = (self.eval(key)?, self.eval(value)?);
                    put(&mut all, key, value);
                }
                let dict = Value::Dict(Rc::new(RefCell::new(all)));
                Self::keeps(&dict)?;
                dict
            }
            Expr::Star(e) => self.eval(e)?,
            Expr::Not(e) => self.eval(e)?.truth().map_or(Value::Unknown, |t| Value::Bool(!t)),
            Expr::Minus(e) => match self.eval(e)? {
                Value::Int(n) => n.checked_neg().map_or(Value::Unknown, Value::Int),
                Value::Float(n) => Value::Float(-n),
                _ => Value::Unknown,
            },
            Expr::Op(..) => {
                // A long sum is a tree that leans to the left: its operators are taken one by one.
                let (mut first, mut rest) = (expr, Vec::new());
                while let Expr::Op(left, op, right) = first {
                    rest.push((*op, right));
                    first = left;
                }
                let mut left = self.eval(first)?;
                while let Some((op, right)) = rest.pop() {
                    match (op, left.truth()) {
                        ("and", Some(false)) | ("or", Some(true)) => continue,
                        ("and" | "or", Some(_)) => {
                            left = self.eval(right)?;
                            continue;
                        }
                        _ => {}
                    }
                    let right = self.eval(right)?;
                    self.makes(cost(&left, op, &right))?;
                    left = operate(&left, op, &right)?;
                }
                left
            }
            Expr::If(condition, yes, no) => match self.eval(condition)?.truth() {
                Some(false) => self.eval(no)?,
                _ => self.eval(yes)?,
            },
            Expr::Each(what, names, over, conditions) => {
                let Some(all) = self.eval(over)?.each() else { return Ok(Value::Unknown) };
                let mut out = Vec::new();
                for value in all {
                    self.steps()?;
                    match self.assign(names, value) {
                        Ok(()) => {}
                        Err(Flow::Limit(limit)) => return Err(Stop::Limit(limit)),
                        Err(_) => break,
                    }
                    let mut fits = true;
                    for condition in conditions {
                        fits &= self.eval(condition)?.truth() != Some(false);
                    }
                    if fits {
                        out.push(self.eval(what)?);
                        self.makes(super::value::PLACE)?;
                    }
                }
                Value::list(out)
            }
            Expr::Unknown => Value::Unknown,
        })
    }
    fn items(&mut self, items: &[Expr]) -> Result<Vec<Value>, Stop> {
        let mut all = Vec::new();
        for item in items {
            let value = self.eval(item)?;
            match item {
                Expr::Star(_) => all.extend(value.each().unwrap_or_else(|| vec![Value::Unknown])),
                _ => all.push(value),
            }
        }
        Ok(all)
    }
    /// An f-string's text.
    fn interpolate(&mut self, text: &str, mut line: u32) -> Result<(String, u32), Stop> {
        self.deeper()?;
        let own = text.split_whitespace().filter(|w| !w.contains('{')).count();
        let mut out = String::new();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            let c = chars[at];
            let doubled = chars.get(at + 1) == Some(&c);
            if (c == '{' || c == '}') && doubled {
                out.push(c);
                at += 2;
            } else if c == '{' {
                let mut depth = 0;
                let from = at + 1;
                let mut colon = None;
                while at < chars.len() {
                    match chars[at] {
                        '{' | '[' | '(' => depth += 1,
                        '}' | ']' | ')' => depth -= 1,
                        ':' | '!' if depth == 1 && chars.get(at + 1) != Some(&'=') => {
                            colon = colon.or(Some(at));
                        }
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                    at += 1;
                }
                let end = at.min(chars.len());
                let inner: String = chars[from..colon.unwrap_or(end)].iter().collect();
                let spec: String = colon.map_or(String::new(), |c| chars[c + 1..end].iter().collect());
                let inner = inner.trim_end_matches('=').to_owned();
                let spec = if spec.contains('{') { self.interpolate(&spec, 0)?.0 } else { spec };
                let body = parse(&super::read::tokens(&inner)).map_err(Stop::Limit)?;
                let value = match body.first() {
                    Some(Stmt::Expr(e)) => self.eval(e)?,
                    _ => Value::Unknown,
                };
                self.makes(value.bytes())?;
                line = value.line_among(own, line);
                out += &formatted(&value, if spec == "r" || spec == "s" { "" } else { &spec })?;
                at += 1;
            } else {
                out.push(c);
                at += 1;
            }
        }
        self.makes(out.len() as u64)?;
        self.within -= 1;
        Ok((out, line))
    }

    fn call(&mut self, f: &Expr, args: &[Arg], line: u32) -> Eval {
        let method = match f {
            Expr::Attr(_, name) => name.clone(),
            _ => String::new(),
        };
        let f = self.eval(f)?;
        let mut plain = Vec::new();
        let mut named = Vec::new();
        for arg in args {
            let value = self.eval(&arg.value)?;
            match (&arg.name, &arg.value) {
                (Some(name), _) => named.push((name.clone(), value)),
                (None, Expr::Star(_)) => plain.extend(value.each().unwrap_or_else(|| vec![Value::Unknown])),
                (None, _) => plain.push(value),
            }
        }
        match f {
            Value::Def(def) => self.enter(&def, None, plain, named),
            Value::Method(object, def) => self.enter(&def, Some(Value::Object(object)), plain, named),
            Value::Class(class) => {
                let object =
                    Rc::new(RefCell::new(Object { class: Some(Rc::clone(&class)), ..Object::default() }));
                if let Some(Value::Def(init)) = class.attrs.get("__init__") {
                    self.enter(init, Some(Value::Object(Rc::clone(&object))), plain, named)?;
                } else {
                    // A dataclass: what is given in the order of its fields, and by name.
                    object.borrow_mut().attrs.extend(class.fields.iter().cloned().zip(plain));
                    object.borrow_mut().attrs.extend(named);
                }
                Ok(Value::Object(object))
            }
            Value::Own(of, name) => match &*of {
                Value::Object(options) => Ok(super::calls::options(self, options, &name, &plain, &named)),
                of => {
                    self.makes(super::calls::cost(of, &name, &plain))?;
                    plain.iter().try_for_each(Self::keeps)?;
                    Ok(super::calls::method(of, &name, &plain, &named)?)
                }
            },
            Value::Lib(path) => super::calls::library(self, &path, &plain, &named, line),
            _ => super::calls::elsewhere(self, &method, &plain, line),
        }
    }
    fn enter(
        &mut self,
        def: &Rc<Def>,
        own: Option<Value>,
        plain: Vec<Value>,
        named: Vec<(String, Value)>,
    ) -> Eval {
        self.entered.insert(Rc::as_ptr(def) as usize);
        if self.locals.len() > FUNCTIONS {
            return Err(Stop::Limit(format!(
                "RecursionError: maximum recursion depth exceeded (functions within each other: {FUNCTIONS})"
            )));
        }
        let mut names = Names::new();
        let mut given = own.into_iter().chain(plain);
        for (name, default) in &def.params {
            if let Some(rest) = name.strip_prefix("**") {
                let pairs = named.iter().map(|(n, v)| (Value::str(n.as_str()), v.clone())).collect();
                names.insert(rest.to_owned(), Value::Dict(Rc::new(RefCell::new(pairs))));
            } else if let Some(rest) = name.strip_prefix('*') {
                names.insert(rest.to_owned(), Value::list(given.by_ref().collect()));
            } else {
                let by_name = named.iter().find(|n| n.0 == *name).map(|n| n.1.clone());
                let value = match (by_name, default) {
                    (Some(value), _) => value,
                    (None, default) => match (given.next(), default) {
                        (Some(value), _) => value,
                        (None, Some(default)) => self.eval(default)?,
                        (None, None) => Value::Unknown,
                    },
                };
                names.insert(name.clone(), value);
            }
        }
        self.locals.push(names);
        let flow = self.block(&def.body);
        self.locals.pop();
        match flow {
            Flow::Return(value) => Ok(value),
            Flow::Raised => Err(Stop::Raised),
            Flow::Exit => Err(Stop::Exit),
            Flow::Limit(limit) => Err(Stop::Limit(limit)),
            _ => Ok(Value::None),
        }
    }
}

/// Whether a block ends the script, or its function, and nothing else.
fn gives_up(body: &[Stmt]) -> bool {
    body.last().is_some_and(|last| match last {
        Stmt::Raise | Stmt::Return(_) | Stmt::Continue | Stmt::Break => true,
        Stmt::Expr(Expr::Call(f, ..)) => match &**f {
            Expr::Name(name) => matches!(name.as_str(), "exit" | "quit"),
            Expr::Attr(_, name) => matches!(name.as_str(), "exit" | "_exit" | "error" | "print_help"),
            _ => false,
        },
        _ => false,
    })
}
