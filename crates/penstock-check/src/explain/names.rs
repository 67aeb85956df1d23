//! Numbers for what is a name: devices, and conditions that the headers do not tell.

use penstock_lang::iptables::Iface;

/// Names that stand for numbers in places.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Devices packets come in by, and the begins of names (`eth+`), which stand for every other device whose name begins
    /// so and fits no longer one; 0 is every one that fits none of these.
    pub inputs: Vec<Iface>,
    /// Conditions the headers do not tell.
    pub others: Vec<String>,
    /// Whether tags make a difference: where not, nothing is said of them.
    pub tags: bool,
    /// Whether the mark that is not known is the connection's: packets themselves come without one.
    pub conn: bool,
}

impl Names {
    /// The number of a device.
    pub fn input(&mut self, name: &str) -> u32 {
        self.known(&Iface { name: name.to_owned(), wildcard: false, invert: false })
    }
    /// The number of a device, or of the others whose names begin so.
    pub fn known(&mut self, input: &Iface) -> u32 {
        let same = |n: &Iface| n.name == input.name && n.wildcard == input.wildcard;
        let at = self.inputs.iter().position(same).unwrap_or_else(|| {
            self.inputs.push(Iface { invert: false, ..input.clone() });
            self.inputs.len() - 1
        });
        at as u32 + 1
    }
    /// The number that a packet by this device has.
    pub fn number(&self, device: &str) -> u32 {
        let fits = self.inputs.iter().enumerate().filter(|(_, n)| n.matches(device));
        fits.max_by_key(|(_, n)| (!n.wildcard, n.name.len())).map_or(0, |(at, _)| at as u32 + 1)
    }
    /// All numbers of devices that a name, or the begin of one, means.
    pub fn numbers(&self, input: &Iface) -> Vec<u32> {
        let all = self.inputs.iter().zip(1..);
        match input.wildcard {
            true => all.filter(|(n, _)| n.name.starts_with(&input.name)).map(|(_, at)| at).collect(),
            false => all.filter(|(n, _)| !n.wildcard && n.name == input.name).map(|(_, at)| at).collect(),
        }
    }
    /// A device of a number, some name where it stands for several.
    pub fn device(&self, number: u32) -> String {
        let begin = match number.checked_sub(1).and_then(|n| self.inputs.get(n as usize)) {
            Some(known) if !known.wildcard => return known.name.clone(),
            Some(others) => others.name.as_str(),
            None => "",
        };
        let more: &[&str] = if begin.is_empty() { &["eth", "wan", "dev", "x"] } else { &["", "eth", "x"] };
        let all = more.iter().flat_map(|m| (0..10).rev().map(move |n| format!("{begin}{m}{n}")));
        all.into_iter().find(|name| self.number(name) == number).unwrap_or_else(|| begin.to_owned())
    }
    /// Devices of these numbers in words.
    pub fn devices(&self, numbers: &[u32]) -> String {
        // The begin of a name says it for all that begin so, where none of them is missing.
        let whole = |begin: &Iface| begin.wildcard && self.numbers(begin).iter().all(|n| numbers.contains(n));
        let said_by =
            |begin: &Iface, n: &Iface| n != begin && n.name.starts_with(&begin.name) && whole(begin);
        let mut said = Vec::new();
        for number in numbers {
            match number.checked_sub(1).and_then(|n| self.inputs.get(n as usize)) {
                None => said.push("another device".to_owned()),
                Some(n) if self.inputs.iter().any(|begin| said_by(begin, n)) => {}
                Some(n) if n.wildcard && !whole(n) => said.push(format!("another {}", n.text())),
                Some(n) => said.push(n.text()),
            }
        }
        if said.is_empty() { "another device".to_owned() } else { said.join(" or ") }
    }
    /// The number of a condition.
    pub fn other(&mut self, text: &str) -> u32 {
        let at = self.others.iter().position(|n| n == text).unwrap_or_else(|| {
            self.others.push(text.to_owned());
            self.others.len() - 1
        });
        at as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        let mut names = Names::default();
        for name in all {
            let wildcard = name.ends_with('+');
            names.known(&Iface { name: name.trim_end_matches('+').to_owned(), wildcard, invert: false });
        }
        names
    }

    #[test]
    fn a_device_has_the_number_of_its_name_or_of_the_longest_begin() {
        let names = names(&["eth+", "eth1", "eth1+", "ppp+"]);
        let numbers = ["eth1", "eth10", "eth2", "ppp0", "wlan0"].map(|n| names.number(n));
        assert_eq!(numbers, [2, 3, 1, 4, 0]);
        let eth = names.inputs[0].clone();
        assert_eq!(names.numbers(&eth), [1, 2, 3]);
        for number in 0..=4 {
            assert_eq!(names.number(&names.device(number)), number);
        }
    }

    #[test]
    fn devices_in_words() {
        let names = names(&["eth+", "eth1", "wlan0"]);
        assert_eq!(names.devices(&[1, 2]), "eth+");
        assert_eq!(names.devices(&[1]), "another eth+");
        assert_eq!(names.devices(&[2, 3]), "eth1 or wlan0");
        assert_eq!(names.devices(&[0, 1, 2]), "another device or eth+");
    }
}
