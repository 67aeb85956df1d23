//! `tc -graph class show`: classes as a tree.
//!
//! Follows: iproute2 6.1.0 `tc/tc_class.c` `graph_cls_show`, `graph_indent`: roots in the reverse of the kernel's order, children in
//! it. The indentation of the last line below a subtree follows a pointer into a node that is freed by then; what is
//! found there in practice (a successor, wherever there was none) is printed here too.

use super::{Out, stats};
use crate::tc::kinds;
use penstock_model::Handle;
use penstock_model::rtnetlink::ClassDump;

struct Node<'a> {
    dump: &'a ClassDump,
    parent: Option<usize>,
    /// The child the last walk from the root came by.
    right: Option<usize>,
    /// Another node follows in the list it stands in.
    next: bool,
    children: usize,
}

struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    /// Those without a place yet, in tc's order: the last dumped first.
    loose: Vec<usize>,
}

pub fn print(dumps: &[(String, ClassDump)], out: &mut Out) {
    let node = |dump| Node { dump, parent: None, right: None, next: false, children: 0 };
    let mut graph = Graph { nodes: dumps.iter().map(|(_, d)| node(d)).collect(), loose: Vec::new() };
    let (roots, loose) = (0..dumps.len()).rev().partition(|&i| dumps[i].1.parent == Handle::ROOT);
    graph.loose = loose;
    let mut line = String::new();
    graph.show(roots, &mut line, out);
}

impl Graph<'_> {
    fn show(&mut self, list: Vec<usize>, line: &mut String, out: &mut Out) {
        for (place, &at) in list.iter().enumerate() {
            self.nodes[at].next = place + 1 < list.len();
        }
        for &at in &list {
            let id = self.nodes[at].dump.classid;
            let nodes = &self.nodes;
            let (mut children, loose): (Vec<_>, Vec<_>) =
                self.loose.iter().partition(|&&i| nodes[i].dump.parent == id);
            children.reverse();
            self.loose = loose;
            self.nodes[at].children = children.len();
            for &child in &children {
                self.nodes[child].parent = Some(at);
            }
            self.one(at, line, out);
            self.show(children, line, out);
            if !self.nodes[at].next {
                self.indent(at, line, None);
                line.push('\n');
            }
            out.text_only(format_args!("{line}"));
            line.clear();
            // Freed: its successor is now a free list's.
            self.nodes[at].next = true;
        }
    }

    /// The lines of one class.
    fn one(&mut self, at: usize, line: &mut String, out: &mut Out) {
        let dump = self.nodes[at].dump;
        let id = dump.classid.to_string();
        self.indent(at, line, None);
        out.text_only(format_args!("{line}+---({id}) {} ", dump.kind));
        line.clear();
        kinds::print_class(dump.kind, &dump.options, out);
        if out.form.stats {
            self.indent(at, line, Some((dump.kind.len() + id.len()).saturating_sub(2)));
            out.text_only(format_args!("\n"));
            stats(&dump.stats, line, out);
            line.clear();
            if self.nodes[at].next || self.nodes[at].children > 0 {
                line.push('\n');
                self.indent(at, line, Some(0));
            }
        }
        out.text_only(format_args!("{line}\n"));
        line.clear();
    }

    /// `graph_indent`; with `below` for a line under the class's own, that many blanks further.
    fn indent(&mut self, at: usize, line: &mut String, below: Option<usize>) {
        let mut node = at;
        while let Some(parent) = self.nodes[node].parent {
            self.nodes[parent].right = Some(node);
            node = parent;
        }
        while let Some(right) = self.nodes[node].right {
            line.push_str(if self.nodes[node].next { "|    " } else { "     " });
            node = right;
        }
        if let Some(blanks) = below {
            line.push_str(match (self.nodes[node].next, self.nodes[node].children > 0) {
                (true, true) => "|    |",
                (true, false) => "|     ",
                (false, true) => "     |",
                (false, false) => "      ",
            });
            line.extend(std::iter::repeat_n(' ', blanks));
        }
    }
}
