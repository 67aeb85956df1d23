//! Scripts in Python: the commands they give to other programs, one by one.
//!
//! What is carried out: assignments, conditions, loops, functions, classes, f-strings, `%` and `format`, lists, dictionaries,
//! `argparse`'s defaults; `os.system`, `subprocess` with lists and with a shell. Whatever else there is has an unknown value, and a command
//! whose words are not wholly known is left out.
//!
//! Differs: a value of the outside (a file, a service, an answer) is unknown; loops without an end are gone through once.

mod calls;
mod eval;
mod expr;
mod operate;
mod read;
mod tree;
mod value;

pub use eval::{Python, Runs};

use std::collections::BTreeMap;

/// For each line of a statement over several lines: its last.
pub fn spans(text: &str) -> BTreeMap<u32, u32> {
    let mut spans = BTreeMap::new();
    let mut begins = None;
    for (token, line) in read::tokens(text) {
        match token {
            read::Token::Newline => {
                if let Some(from) = begins.take() {
                    spans.extend((from..line).map(|l| (l, line)));
                }
            }
            read::Token::Indent | read::Token::Dedent => {}
            _ => begins = begins.or(Some(line)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands with their lines; every one works.
    #[derive(Default)]
    struct Kept(Vec<(u32, String)>);

    impl Runs for Kept {
        fn words(&mut self, words: Vec<String>, line: u32) -> (i32, String) {
            self.0.push((line, words.join(" ")));
            (0, String::new())
        }
        fn shell(&mut self, text: &str, line: u32) -> (i32, String) {
            self.0.push((line, text.to_owned()));
            (0, String::new())
        }
        fn left_out(&mut self, line: u32) {
            self.0.push((line, "?".to_owned()));
        }
    }

    #[track_caller]
    fn check(text: &str, want: &[(u32, &str)]) {
        let mut kept = Kept::default();
        Python::new(&mut kept, Vec::new(), "eth0".to_owned()).run(text).unwrap();
        let got: Vec<(u32, &str)> = kept.0.iter().map(|c| (c.0, c.1.as_str())).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn strings_in_all_their_ways() {
        check("import os\nD = 'eth0'\nos.system(f'tc a {D} {2 * 5:x}')\n", &[(3, "tc a eth0 a")]);
        check(
            "import os\nos.system('a %s %d' % ('x', 3))\nos.system('{} {n}'.format(1, n=2))\n",
            &[(2, "a x 3"), (3, "1 2")],
        );
        check("from subprocess import run\nrun(['tc', *'a b'.split()])\n", &[(2, "tc a b")]);
        check("from subprocess import check_output as co\nco('a b'.split())\n", &[(2, "a b")]);
        check(
            "import asyncio\nasync def main():\n    await asyncio.create_subprocess_exec('tc', 'a', 'b')\nasyncio.run(main())\n",
            &[(3, "tc a b")],
        );
        check("import os\nos.system('a ' + open('x').read())\n", &[(2, "?")]);
        check("import os\nos.system(\n  'a '\n  'b')\n", &[(3, "a b")]);
    }

    #[test]
    fn functions_loops_and_classes() {
        check(
            "import subprocess\ndef sh(c):\n    subprocess.run(c, shell=True)\nfor i, r in enumerate([5, 6], 1):\n    sh(f'{i}:{r}')\n",
            &[(5, "1:5"), (5, "2:6")],
        );
        // Where a wrapper adds a word or two, the call says the command.
        check(
            "import os\ndef tc(c):\n    os.system(f'tc {c}')\ndef ip(c):\n    os.system('ip ' + c)\ntc('qdisc add')\nip('link set up')\n",
            &[(6, "tc qdisc add"), (7, "ip link set up")],
        );
        check(
            "import os\nclass S:\n    def __init__(self, d):\n        self.d = d\n    def go(self):\n        os.system('x ' + self.d)\nif __name__ == '__main__':\n    S('y').go()\n",
            &[(6, "x y")],
        );
        check(
            "import os, argparse\np = argparse.ArgumentParser()\np.add_argument('--dev', default='eth7')\np.add_argument('iface')\na = p.parse_args()\nos.system(f'{a.dev} {a.iface}')\n",
            &[(6, "eth7 eth0")],
        );
        check(
            "import os, sys\nif os.geteuid() != 0:\n    sys.exit(1)\nif len(sys.argv) < 2:\n    sys.exit(1)\nos.system(sys.argv[1])\n",
            &[(6, "eth0")],
        );
        check(
            "import os\ntry:\n    raise ValueError\nexcept ValueError:\n    os.system('a')\nwhile True:\n    os.system('b')\n",
            &[(5, "a"), (7, "b")],
        );
    }

    #[test]
    fn what_is_not_python_is_left_out() {
        check(
            "import os\nmatch x:\n    case 1:\n        pass\n@deco\ndef f():\n    pass\nos.system('a')\n)))\n",
            &[(8, "a")],
        );
    }

    #[test]
    fn a_module_of_functions_is_read_by_calling_them() {
        check(
            "import os\ndef add(d, r='5mbit'):\n    os.system('tc a ' + r)\ndef used():\n    return 1\nx = used()\n\
             class S:\n    def __init__(self):\n        self.d = 'eth0'\n    def go(self):\n        os.system(f'tc {self.d}')\n",
            &[(3, "tc a 5mbit"), (11, "tc eth0")],
        );
        // Where something is called, the others are not.
        check("import os\ndef f():\n    os.system('a')\nos.system('b')\n", &[(4, "b")]);
    }

    /// On a thread as small as a test's: nothing here may use up its stack.
    fn refused(text: &str) -> String {
        let mut kept = Kept::default();
        Python::new(&mut kept, Vec::new(), "eth0".to_owned()).run(text).expect_err(text)
    }

    #[test]
    fn nesting_ends_as_python_ends_it() {
        let nested = |open: &str, inner: &str, close: &str, n: usize| {
            format!("import os\nx = {}{inner}{}\n", open.repeat(n), close.repeat(n))
        };
        for text in [
            nested("(", "1", ")", 3000),
            nested("[", "1", "]", 3000),
            nested("f(", "1", ")", 3000),
            nested("- ", "1", "", 30_000),
            nested("not ", "1", "", 30_000),
            nested("2 ** ", "1", "", 30_000),
            nested("1 if 1 else ", "1", "", 30_000),
            nested("{1: ", "1", "}", 3000),
            (0..300).map(|n| format!("{}if 1:\n", " ".repeat(n))).collect::<String>()
                + &" ".repeat(300)
                + "x\n",
        ] {
            assert!(refused(&text).contains("SyntaxError: too many nested parentheses"), "{}", &text[..40]);
        }
        for text in [
            nested("1 + ", "1", "", 20_000),
            nested("1 and ", "1", "", 20_000),
            format!("x = a{}\n", ".b".repeat(20_000)),
            format!("x = a{}\n", "[0]".repeat(20_000)),
            format!("x = a{}\n", "()".repeat(20_000)),
            format!("x = {}\n", "'a' ".repeat(20_000)),
        ] {
            assert!(refused(&text).contains("RecursionError: maximum recursion depth"), "{}", &text[..40]);
        }
        // What is below the limits is carried out.
        check(&format!("import os\nx = 'a'{}\nos.system(x[:3])\n", " + 'b'".repeat(1999)), &[(2, "abb")]);
        check(&format!("import os\nos.system({}'a'{})\n", "(".repeat(60), ")".repeat(60)), &[(2, "a")]);
        check("import os\ndef f(n):\n  return 'a' if n == 0 else f(n - 1)\nos.system(f(50))\n", &[(3, "a")]);
        assert!(refused("def f():\n  return f()\nf()\n").contains("RecursionError"));
        let deep = "f'{".repeat(300) + "1" + &"}'".repeat(300);
        let mut kept = Kept::default();
        let _ = Python::new(&mut kept, Vec::new(), "eth0".to_owned()).run(&format!("x = {deep}\n"));
    }

    #[test]
    fn memory_and_time_have_limits() {
        for (text, limit) in [
            (
                "x = 'a'\n".to_owned() + &"x = x + x\n".repeat(60),
                "bytes of strings and lists made: 268435456",
            ),
            ("x = [1]\n".to_owned() + &"x = x + x\n".repeat(60), "bytes of strings and lists made"),
            ("x = '%999999999d' % 5\n".to_owned(), "width of a format: 1000000"),
            ("x = '{:999999999}'.format(5)\n".to_owned(), "width of a format"),
            ("x = f'{5:.999999999f}'\n".to_owned(), "width of a format"),
            ("x = 'a' * 10**12\n".to_owned(), "bytes of strings and lists made"),
            ("x = [1] * 10**12\n".to_owned(), "bytes of strings and lists made"),
            ("x = ('a' * 10**6).replace('a', 'a' * 10**6)\n".to_owned(), "bytes of strings and lists made"),
            ("x = ('a' * 10**6).join(['b'] * 10**6)\n".to_owned(), "bytes of strings and lists made"),
            ("for i in range(10**12):\n  os.system('a')\n".to_owned(), "bytes of strings and lists made"),
            ("i = 0\nwhile i < 10**12:\n  i += 1\n".to_owned(), "steps: 2000000"),
            ("i = 0\nwhile i < 10**12:\n  i += 1\n  os.system('a')\n".to_owned(), "commands given: 20000"),
            (
                "x = []\nfor i in range(100000):\n  x = [x]\nx = 0\n".to_owned(),
                "values within each other: 200",
            ),
            (
                "x = {}\nfor i in range(100000):\n  x = {1: x}\nx = 0\n".to_owned(),
                "values within each other: 200",
            ),
            ("x = []\nx.append(x)\ny = [x]\nz = x == y\n".to_owned(), "values within each other: 200"),
            (
                "x = []\nfor i in range(100000):\n  y = []\n  y.append(x)\n  x = y\n".to_owned(),
                "values within each other",
            ),
        ] {
            let said = refused(&("import os\n".to_owned() + &text));
            assert!(said.contains(limit), "{text:.60}: {said}");
        }
        // A handler does not take a limit for an exception, and the line of the last command is told.
        let text = "import os\nos.system('a')\ntry:\n  x = 'a' * 10**12\nexcept:\n  pass\nfinally:\n  os.system('b')\n";
        assert!(refused(text).starts_with("line 2: stopped at a limit of Python here: "));
        check(
            "import os\nx = -(-2**62 - 2**62)\nfor i in range(2000):\n  pass\nos.system('a')\n",
            &[(5, "a")],
        );
        check("import os\ni = 0\nwhile i < 20000:\n  i += 1\nos.system(str(i))\n", &[(5, "20000")]);
    }

    #[test]
    fn statements_over_several_lines() {
        assert_eq!(spans("a\nf(1,\n  2,\n  3)\nb\n"), BTreeMap::from([(2, 4), (3, 4)]));
    }
}
