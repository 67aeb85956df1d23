//! Targets: which there are and their options.

use super::*;

/// The targets with options.
const EXTENSIONS: [&str; 4] = ["MARK", "TOS", "DSCP", "CLASSIFY"];

/// The options of a target in the order of its table.
pub(super) fn options(target: &str) -> &'static [&'static str] {
    match target {
        "MARK" => &["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark"],
        "TOS" => &["set-tos", "and-tos", "or-tos", "xor-tos"],
        "DSCP" => &["set-dscp", "set-dscp-class"],
        "CLASSIFY" => &["set-class"],
        _ => &[],
    }
}

/// Whether the program refuses a chain of this name: it has a target called so. The old one leaves the built-in
/// targets' names to the tables.
pub(super) fn is_target(name: &str, old: bool) -> bool {
    if old {
        return EXTENSIONS.contains(&name);
    }
    ["ACCEPT", "DROP", "RETURN", "QUEUE"].contains(&name)
        || EXTENSIONS.contains(&name)
        || UNMODELLED.contains(&name) && name != "IMQ"
}

/// Targets of the real program that are not modelled: `-j` to them is refused with a sentence of ours as advice.
const UNMODELLED: [&str; 14] = [
    "LOG",
    "REJECT",
    "MASQUERADE",
    "SNAT",
    "DNAT",
    "REDIRECT",
    "NOTRACK",
    "CONNMARK",
    "TCPMSS",
    "TTL",
    "NFQUEUE",
    "QUEUE",
    "TEE",
    "IMQ",
];

impl Parser<'_> {
    /// An option of the target named before; `false` where it has none of this name.
    pub(super) fn target_option(
        &mut self,
        here: usize,
        name: &str,
        attached: Option<String>,
    ) -> Parsed<bool> {
        let Some((_, target, seen)) = &self.target else { return Ok(false) };
        let (target, seen) = (target.clone(), seen.clone());
        let old = self.old();
        if !old && seen.iter().any(|(n, _)| n == name) {
            let message = format!("{target}: option \"--{name}\" can only be used once.\n");
            return self.fail(here, message, "take one off");
        }
        if !old && self.invert && options(&target).contains(&name) {
            let message = format!("{target}: option \"--{name}\" cannot be inverted.\n");
            return self.fail(here, message, "take the ! off");
        }
        let new = match (target.as_str(), name) {
            ("MARK", "set-mark" | "set-xmark" | "and-mark" | "or-mark" | "xor-mark") => {
                let (text, _) = self.option_value(name, attached)?;
                self.mark_target(name, &text)?
            }
            ("TOS", "set-tos" | "and-tos" | "or-tos" | "xor-tos") => {
                let (text, _) = self.option_value(name, attached)?;
                let (value, mask) = self.tos("TOS", name, &text)?;
                match name {
                    "and-tos" => Target::Tos { value: 0, mask: !value },
                    "or-tos" => Target::Tos { value, mask: value },
                    "xor-tos" => Target::Tos { value, mask: 0 },
                    _ => Target::Tos { value, mask },
                }
            }
            ("DSCP", "set-dscp") => {
                let (text, _) = self.option_value(name, attached)?;
                Target::Dscp(self.dscp("DSCP", name, &text)?)
            }
            ("DSCP", "set-dscp-class") => {
                let (text, _) = self.option_value(name, attached)?;
                Target::Dscp(self.dscp_class(&text)?)
            }
            ("CLASSIFY", "set-class") => {
                let (text, _) = self.option_value(name, attached)?;
                // `sscanf("%x:%x")`: what lies above 16 bits is lost.
                let leading = |t: &str| {
                    let t = t.strip_prefix("0x").unwrap_or(t);
                    let digits = t.bytes().take_while(u8::is_ascii_hexdigit).count();
                    u32::from_str_radix(&t[..digits], 16).ok()
                };
                let lax = text.split_once(':').and_then(|(major, minor)| {
                    u32::from_str_radix(major.strip_prefix("0x").unwrap_or(major), 16).ok()?;
                    Some(Handle(leading(major)? << 16 | leading(minor)? & 0xffff))
                });
                let class = text.split_once(':').and_then(|(major, minor)| {
                    let hex = |t: &str| u32::from_str_radix(t, 16).ok().filter(|&v| v <= 0xffff);
                    let plain = !major.starts_with('+') && !minor.starts_with('+');
                    Some(Handle(hex(major)? << 16 | hex(minor)?)).filter(|_| plain)
                });
                match if old { class } else { lax } {
                    Some(class) => Target::Classify(class),
                    None => {
                        let message = match old {
                            true => format!("Bad class value `{text}'"),
                            false => format!("Bad class value \"{text}\""),
                        };
                        return self.fail(self.at - 1, message, "MAJOR:MINOR in hex, e.g. 1:10");
                    }
                }
            }
            _ => return Ok(false),
        };
        if old && !seen.is_empty() {
            let message = match target.as_str() {
                "MARK" => "MARK target: Only one --set/and/or/xor... is allowed".to_owned(),
                other => format!("{other}: option \"--{name}\" can only be used once.\n"),
            };
            return self.fail(here, message, "take one off");
        }
        if let Some(t) = &mut self.target {
            t.2.push((name.to_owned(), new));
        }
        Ok(true)
    }

    fn mark_target(&self, name: &str, text: &str) -> Parsed<Target> {
        let bits = || match parse_u32(text) {
            Some(bits) => Ok(bits),
            None => self.bad_value("MARK", name, "0-4294967295"),
        };
        Ok(match name {
            "and-mark" => Target::Mark { value: 0, mask: !bits()? },
            "or-mark" => {
                let bits = bits()?;
                Target::Mark { value: bits, mask: bits }
            }
            "xor-mark" => Target::Mark { value: bits()?, mask: 0 },
            "set-mark" => {
                let (value, mask) = self.mark_mask("MARK", name, text)?;
                Target::Mark { value, mask: value | mask }
            }
            _ => {
                let (value, mask) = self.mark_mask("MARK", name, text)?;
                Target::Mark { value, mask }
            }
        })
    }

    pub(super) fn finish_target(&mut self) -> Parsed {
        let Some((word, name, mut done)) = self.target.take() else { return Ok(()) };
        let seen: Vec<&str> = done.iter().map(|d| d.0.as_str()).collect();
        self.together(&name, options(&name), &seen)?;
        let done = done.pop().map(|d| d.1);
        self.rule.target = match (name.as_str(), done) {
            (_, Some(target)) => target,
            (_, None) if self.goto => Target::Goto(name),
            ("ACCEPT", None) => Target::Verdict(Verdict::Accept),
            ("DROP", None) => Target::Verdict(Verdict::Drop),
            ("RETURN", None) => Target::Return,
            ("MARK", None) if self.old() => {
                return self.fail(
                    word,
                    "MARK target: Parameter --set-xmark is required",
                    "e.g. --set-mark 10",
                );
            }
            ("MARK", None) => {
                let message = "MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required";
                return self.fail(word, message, "e.g. --set-mark 10");
            }
            ("TOS", None) if !self.old() => {
                return self.fail(word, "TOS: An action is required", "e.g. --set-tos 0x10");
            }
            ("TOS", None) => {
                return self.fail(word, "TOS: The --set-tos parameter is required", "e.g. --set-tos 0x10");
            }
            ("DSCP", None) => {
                return self.fail(
                    word,
                    "DSCP target: Parameter --set-dscp is required",
                    "e.g. --set-dscp 46",
                );
            }
            ("CLASSIFY", None) => {
                let message = if self.old() {
                    "CLASSIFY: Parameter --set-class is required"
                } else {
                    "CLASSIFY: option \"--set-class\" must be specified"
                };
                return self.fail(word, message, "e.g. --set-class 1:10");
            }
            ("", None) => return self.fail(word, "Invalid target name (too short)", ""),
            (long, None) if long.len() > 28 => {
                return self.fail(word, format!("Invalid target name `{long}' (28 chars max)"), "");
            }
            (_, None) => Target::Jump(name),
        };
        Ok(())
    }
}

/// The refusal of a jump to something that is neither a chain nor a known target.
pub(in crate::iptables) fn no_target(kernel: Kernel, name: &str) -> Failure {
    let message = match kernel {
        Kernel::V2_6_35 => format!(
            "Couldn't load target `{name}':/lib/xtables/libipt_{name}.so: cannot open shared object file: No such file or directory\n"
        ),
        Kernel::V6_12 => format!("Couldn't load target `{name}':No such file or directory\n"),
    };
    let help = if UNMODELLED.contains(&name) {
        format!("{name} is not modelled; targets: ACCEPT DROP RETURN {}", EXTENSIONS.join(" "))
    } else {
        format!(
            "create the chain first: iptables -N {name}; or one of ACCEPT DROP RETURN {}",
            EXTENSIONS.join(" ")
        )
    };
    Failure::parameter(kernel, 0, message, &help)
}
