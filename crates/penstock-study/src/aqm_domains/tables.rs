//! Tables 1 to 5: what each run gives, means over seeds, and the published cells beside.

use super::super::NumberRow;
use penstock_lab::run::Outcome;
use penstock_measure::jain;

/// What the tables need of one run. Goodputs in Mbit/s, drop rates in kbit/s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Goodputs of the SACK connections.
    pub sack: Vec<f64>,
    /// Of the NewReno+ECN connections.
    pub ecn: Vec<f64>,
    /// Of the NewReno connections behind r2.
    pub inter: Vec<f64>,
    /// Drops of the connections from end to end before r0-r2.
    pub de1: f64,
    /// And before r2-r1.
    pub de2: f64,
    /// Drops of the NewReno connections behind r2.
    pub di: f64,
    /// Mean wait before r2-r1, ms.
    pub wait: f64,
}

impl Cell {
    /// A cell of the tables, by the names of `published.csv`.
    pub fn value(&self, name: &str) -> Option<f64> {
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let ends = || [self.sack.as_slice(), self.ecn.as_slice()].concat();
        Some(match name {
            "end" => sum(&self.sack) + sum(&self.ecn),
            "inter" => sum(&self.inter),
            "de1" => self.de1,
            "de2" => self.de2,
            "di" => self.di,
            "fie" => jain(&ends())?,
            "fii" => jain(&self.inter)?,
            "gecn" => sum(&self.ecn),
            "gsack" => sum(&self.sack),
            "fiecn" => jain(&self.ecn)?,
            "fisack" => jain(&self.sack)?,
            "wait" => self.wait,
            _ => return None,
        })
    }
}

/// What a run gives the tables.
pub(super) fn cell(outcome: &Outcome) -> Cell {
    let record = &outcome.record;
    // As the document has it: what arrived in the whole run, over its length.
    let goodputs = |group: &str| -> Vec<f64> {
        let flows = record.flows.iter().filter(|f| f.group.as_deref() == Some(group));
        flows.map(|f| f.payload_bytes.unwrap_or(0) as f64 * 8.0 / record.duration_s / 1e6).collect()
    };
    let drops = |group: &str, host: &str| -> f64 {
        let groups = record.groups.iter().filter(|g| g.name == group);
        let links = groups.flat_map(|g| &g.links).filter(|l| l.host == host && l.dev == "eth1");
        links.fold(0.0, |sum, l| sum + l.lost_bit_s / 1e3)
    };
    let ends = |host| drops("SACK", host) + drops("NewReno+ECN", host);
    let wait = record.devices.iter().find(|d| d.host == "r2" && d.dev == "eth1").and_then(|d| d.sojourn_ms);
    Cell {
        sack: goodputs("SACK"),
        ecn: goodputs("NewReno+ECN"),
        inter: goodputs("NewReno"),
        de1: ends("r0"),
        de2: ends("r2"),
        di: drops("NewReno", "r2"),
        wait: wait.map_or(0.0, |w| w.mean),
    }
}

/// One column of the tables.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// `RED-DT`, `DT-RED` or `DT-DT`.
    pub order: &'static str,
    /// `gentle`, `adaptive`, or empty without RED.
    pub red: &'static str,
    /// Packets.
    pub queue: u32,
    /// What its run gave.
    pub cell: Cell,
}

impl Column {
    /// A cell; NaN where nothing was measured, so that no claim holds by it.
    pub fn value(&self, name: &str) -> f64 {
        self.cell.value(name).unwrap_or(f64::NAN)
    }
    /// Drops of all TCP connections together, kbit/s.
    pub fn drops(&self) -> f64 {
        self.value("de1") + self.value("de2") + self.value("di")
    }
    /// Goodput of all TCP connections together, Mbit/s.
    pub fn goodput(&self) -> f64 {
        self.value("end") + self.value("inter")
    }
    /// Goodput of a connection from end to end over that of one behind r2.
    pub fn ratio(&self) -> f64 {
        (self.value("end") / 18.0) / (self.value("inter") / 9.0)
    }
    /// Whether it is the column of this name; without RED it serves both.
    pub(super) fn is(&self, order: &str, red: &str, queue: u32) -> bool {
        self.order == order && self.queue == queue && (self.red.is_empty() || self.red == red)
    }
}

/// A published cell, a line of `published.csv`.
pub(super) struct Published<'a> {
    table: &'a str,
    order: &'a str,
    red: &'static str,
    queue: u32,
    cell: &'a str,
    value: f64,
    witness: [f64; 3],
}

/// The published cells.
pub(super) fn cells(text: &str) -> Vec<Published<'_>> {
    text.lines().filter(|l| !l.starts_with('#')).filter_map(published).collect()
}

fn published(line: &str) -> Option<Published<'_>> {
    let words: Vec<&str> = line.split(',').collect();
    let [table, order, red, queue, cell, value, ns2, least, most] = words.try_into().ok()?;
    let red = match red {
        "red" => "gentle",
        "ared" => "adaptive",
        _ => "",
    };
    let witness = [ns2.parse().ok()?, least.parse().ok()?, most.parse().ok()?];
    Some(Published {
        table,
        order,
        red,
        queue: queue.parse().ok()?,
        cell,
        value: value.parse().ok()?,
        witness,
    })
}

impl Published<'_> {
    /// What the run of its column gave.
    pub(super) fn of(&self, columns: &[Column]) -> Option<f64> {
        let column = columns.iter().find(|c| c.is(self.order, self.red, self.queue));
        column.and_then(|c| c.cell.value(self.cell))
    }
    fn row(self) -> NumberRow {
        let (what, unit) = match self.cell {
            "end" => ("goodput end nodes", "Mbit/s"),
            "inter" => ("goodput inter. nodes", "Mbit/s"),
            "de1" => ("drops end r0-r2", "kbit/s"),
            "de2" => ("drops end r2-r1", "kbit/s"),
            "di" => ("drops inter. nodes", "kbit/s"),
            "fie" => ("fairness end nodes", ""),
            "fii" => ("fairness inter. nodes", ""),
            "gecn" => ("goodput NewReno+ECN", "Mbit/s"),
            "gsack" => ("goodput SACK", "Mbit/s"),
            "fiecn" => ("fairness NewReno+ECN", ""),
            _ => ("fairness SACK", ""),
        };
        let red = if self.red.is_empty() { String::new() } else { format!(" {}", self.red) };
        NumberRow {
            experiment: self.table.to_owned(),
            quantity: format!("{}{red} {}: {what}", self.order, self.queue),
            unit: unit.to_owned(),
            published: self.value,
            measured: None,
            range: None,
            witness: Some(self.witness),
            table: String::new(),
            excluded: None,
        }
    }
}

/// The published cells as rows, before anything is measured.
pub(in super::super) fn rows(text: &str) -> Vec<NumberRow> {
    cells(text).into_iter().map(Published::row).collect()
}

/// How the numbers fare against the document and against ns-2, in a sentence each.
pub(in super::super) fn remark(numbers: &[NumberRow], seeds: u64) -> String {
    let of = |cell: &dyn Fn(&NumberRow) -> Option<bool>| {
        let judged: Vec<bool> = numbers.iter().filter_map(cell).collect();
        (judged.iter().filter(|ok| **ok).count(), judged.len())
    };
    let within = |n: &NumberRow, share: f64| n.difference().map(|d| d.abs() <= share);
    let busy = of(&|n| within(n, 0.08).filter(|_| n.experiment == "table-1" && n.published > 0.3));
    let starved = of(&|n| {
        let measured = n.measured.filter(|_| n.experiment == "table-1" && n.published <= 0.3)?;
        Some((1.0 / 1.5..=1.5).contains(&(measured / n.published)))
    });
    let fair = of(&|n| {
        let measured = n.measured.filter(|_| n.experiment == "table-3")?;
        Some((measured - n.published).abs() <= 0.05)
    });
    let spread = of(&|n| {
        let ([_, least, most], measured) = (n.witness?, n.measured?);
        Some((least..=most).contains(&measured))
    });
    format!(
        "Medians over {seeds} seeds. Table 1: {} of {} goodputs above 0.3 Mbit/s within 8 % of the published, {} of {} starved ones within a \
         factor of 1.5. Table 3: {} of {} indices within 0.05. Within ns-2's own range over 12 seeds: {} of {} medians.\n",
        busy.0, busy.1, starved.0, starved.1, fair.0, fair.1, spread.0, spread.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_summed_and_found() {
        let cell = Cell { sack: vec![1.0, 1.0], ecn: vec![2.0], inter: vec![1.0], ..Cell::default() };
        let column = Column { order: "DT-DT", red: "", queue: 72, cell };
        assert!((column.ratio() - 2.0).abs() < 1e-12);
        assert_eq!((column.value("end"), column.value("fii"), column.goodput()), (4.0, 1.0, 5.0));
        assert!(column.value("nothing").is_nan());
        let text = "# head\ntable-1,DT-DT,-,72,end,8.8,8.5,8.1,9\ntable-1,DT-RED,red,72,end,1,1,1,1\n";
        let cells = cells(text);
        assert_eq!(
            cells.iter().map(|c| c.of(std::slice::from_ref(&column))).collect::<Vec<_>>(),
            [Some(4.0), None]
        );
        let mut rows = rows(text);
        rows[0].measured = Some(8.2);
        assert_eq!(rows[1].quantity, "DT-RED gentle 72: goodput end nodes");
        assert!(remark(&rows, 2).contains("1 of 1 goodputs above 0.3 Mbit/s"), "{}", remark(&rows, 2));
    }
}
