//! Text tables with aligned columns.

/// Which way a column leans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table: a head and rows of as many cells.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    head: Vec<(String, Option<Align>)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        let head = columns.iter().map(|(name, align)| ((*name).to_owned(), Some(*align))).collect();
        Table { head, rows: Vec::new() }
    }
    /// Adds a row; missing cells stay empty, surplus ones are left out.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Table {
        let mut cells: Vec<String> = cells.into_iter().take(self.head.len()).map(Into::into).collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
        self
    }
    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The table as lines indented by `indent`, two blanks between columns, columns that are empty everywhere
    /// left out.
    pub fn text(&self, indent: usize) -> String {
        let width = |i: usize| {
            let cells = self.rows.iter().map(|row| row[i].chars().count());
            cells.max().filter(|&w| w > 0).map(|w| w.max(self.head[i].0.chars().count()))
        };
        let columns: Vec<(usize, usize)> =
            (0..self.head.len()).filter_map(|i| width(i).map(|w| (i, w))).collect();
        let mut out = String::new();
        let mut line = |cell: &dyn Fn(usize) -> String| {
            let mut text = " ".repeat(indent);
            for (at, &(i, width)) in columns.iter().enumerate() {
                if at > 0 {
                    text.push_str("  ");
                }
                let cell = cell(i);
                let pad = " ".repeat(width - cell.chars().count());
                match self.head[i].1 {
                    Some(Align::Right) => text.extend([pad, cell]),
                    _ => text.extend([cell, pad]),
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(&|i| self.head[i].0.clone());
        for row in &self.rows {
            line(&|i| row[i].clone());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_empty_ones_go() {
        let mut t = Table::new(&[("app", Align::Left), ("rtt", Align::Right), ("rate", Align::Right)]);
        t.row(["u5 iperf", "", "5.85 Mbit/s"]).row(["u5 µ", "", "9 bit/s"]);
        assert_eq!(t.text(2), "  app              rate\n  u5 iperf  5.85 Mbit/s\n  u5 µ          9 bit/s\n");
        assert!(!t.is_empty());
    }

    #[test]
    fn odd_rows_do_no_harm() {
        let mut t = Table::new(&[("a", Align::Left), ("b", Align::Left)]);
        t.row(["1"]).row(["1", "2", "3"]);
        assert_eq!(t.text(0), "a  b\n1\n1  2\n");
    }
}
