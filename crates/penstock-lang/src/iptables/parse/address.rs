//! Addresses, masks, interfaces and protocols of a rule.

use super::{AddrMatch, Family, Iface, PROTOCOLS, Parsed, Parser, option};

impl Parser<'_> {
    pub(super) fn protocol(&mut self, here: usize, attached: Option<String>) -> Parsed {
        let (text, invert) = self.invertible("-p", attached)?;
        self.give(here, 'p')?;
        let lower = text.to_ascii_lowercase();
        let number = match option::number(&lower) {
            Some(n) => u8::try_from(n).ok(),
            None => PROTOCOLS.iter().find(|(name, _)| *name == lower).map(|p| p.1),
        };
        let Some(number) = number else {
            let message = match self.old() {
                true => format!("unknown protocol `{lower}' specified"),
                false => format!("unknown protocol \"{lower}\" specified"),
            };
            return self.fail(self.at - 1, message, "tcp, udp, icmp, all, or a number");
        };
        if number == 0 && invert {
            return self.fail(here, "rule would never match protocol", "");
        }
        self.protocol_word = Some(lower);
        if number != 0 {
            self.rule.protocol = Some((number, invert));
        }
        Ok(())
    }

    /// The addresses of `-s` or `-d`, commas between; `None` for no condition at all (0.0.0.0/0).
    pub(super) fn addresses(&self, here: usize, text: &str, invert: bool) -> Parsed<Vec<Option<AddrMatch>>> {
        let list: Vec<&str> = text.split(',').map(str::trim_start).collect();
        let found: Parsed<Vec<_>> = list.iter().map(|one| self.address(here, one, invert)).collect();
        let found = found?;
        if found.len() > 1 && invert {
            let message = "! not allowed with multiple source or destination IP addresses";
            return self.fail(here, message, "one rule for each address");
        }
        Ok(found)
    }

    fn address(&self, here: usize, text: &str, invert: bool) -> Parsed<Option<AddrMatch>> {
        let family = self.program.family;
        let (addr, mask_text) = match text.rsplit_once('/') {
            Some((addr, mask)) => (addr, Some(mask)),
            None => (text, None),
        };
        let mask = match mask_text {
            None => family.mask(family.bits()),
            Some(text) => {
                let len = option::number(text).filter(|&n| n <= u64::from(family.bits()));
                match len.map(|n| family.mask(n as u32)).or_else(|| family.parse(text)) {
                    Some(mask) => mask,
                    None => {
                        let help = match family {
                            Family::Ip => "0 to 32, or 255.255.255.0",
                            Family::Ip6 => "0 to 128",
                        };
                        return self.fail(here, format!("invalid mask `{text}' specified"), help);
                    }
                }
            }
        };
        let short = family == Family::Ip && mask_text.is_some();
        // Under a mask of nothing the name does not count.
        let value = match mask {
            0 => Some(0),
            _ => family.parse(addr).or_else(|| dotted(addr, short).filter(|_| family == Family::Ip)),
        };
        let local = (addr == "localhost").then_some(match family {
            Family::Ip => 0x7f00_0001,
            Family::Ip6 => 1,
        });
        let Some(value) = value.or(local) else {
            let message = format!("host/network `{addr}' not found");
            let help = "write an address in numbers, e.g. 10.0.0.0/24: names are not looked up";
            return self.fail(here, message, help);
        };
        Ok((mask != 0 || invert).then_some(AddrMatch { addr: value & mask, mask, invert }))
    }

    pub(super) fn iface(&mut self, here: usize, text: &str, invert: bool) -> Parsed<Option<Iface>> {
        if text.is_empty() {
            return self.fail(here, "Empty interface is likely to be undesired", "");
        }
        if text.len() + 1 > 16 {
            let message = format!("interface name `{text}' must be shorter than IFNAMSIZ (15)");
            return self.fail(here, message, "");
        }
        let weird = match self.old() {
            true => {
                (!text.ends_with('+') && text.contains([':', '!', '*'])).then_some("No aliases, :, ! or *")
            }
            false => text.contains(['/', ' ']).then_some("'/' and ' ' are not allowed by the kernel"),
        };
        if let Some(why) = weird {
            let warning = format!("Warning: weird character in interface `{text}' ({why}).\n");
            self.warnings.push_str(&warning);
        }
        let (name, wildcard) = match text.strip_suffix('+') {
            Some(name) => (name, true),
            None => (text, false),
        };
        if self.old() && wildcard && name.is_empty() && !invert {
            return Ok(None);
        }
        Ok(Some(Iface { name: name.to_owned(), wildcard, invert }))
    }
}

/// A dotted quad; with a mask behind, missing last parts are 0 (`10.3/16`).
fn dotted(text: &str, short: bool) -> Option<u128> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 || (parts.len() < 4 && !short) {
        return None;
    }
    let mut value = 0u128;
    for i in 0..4 {
        let part = match parts.get(i) {
            Some(p) if !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()) => p.parse::<u8>().ok()?,
            Some(_) => return None,
            None => 0,
        };
        value = value << 8 | u128::from(part);
    }
    Some(value)
}
