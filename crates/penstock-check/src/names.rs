//! Which devices the words of a command name, make and take away.

/// Whether a word may be a device's name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() < 16
        && !name.starts_with('-')
        && !name.contains(['/', ' ', '$', '*', '?', ':'])
        && name != "lo"
}

/// Devices a command takes to be there.
pub(crate) fn named(words: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    let program = words.first().map_or("", |w| w.rsplit('/').next().unwrap_or(w));
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let removes = words.iter().any(|w| w == "del" || w == "delete") && program == "ip";
    let adds = program == "ip"
        && matches!(word(1), "link" | "l" | "li" | "tuntap" | "tunnel")
        && matches!(word(2), "add" | "a");
    for (at, text) in words.iter().enumerate() {
        let next = || word(at + 1).to_owned();
        match (program, text.as_str()) {
            ("tc", "dev" | "indev") => names.push(next()),
            ("ip", "dev") if !removes && !adds => names.push(next()),
            // The device below a tunnel, behind its kind or mode.
            ("ip", "dev") if adds && words[..at].iter().any(|w| w == "type" || w == "mode") => {
                names.push(next());
            }
            ("ip", "link") if adds && at > 1 => names.push(next()),
            ("ip", "master") => names.push(next()),
            ("ip", "set") if matches!(word(at - 1), "link" | "l" | "li") && word(at + 1) != "dev" => {
                names.push(next())
            }
            ("ip", "show" | "list" | "ls")
                if matches!(word(at - 1), "link" | "l" | "addr" | "a" | "address") =>
            {
                names.push(next())
            }
            ("ethtool", t) if at > 0 && t.starts_with('-') => names.push(next()),
            ("brctl", "addif") => names.extend([next(), word(at + 2).to_owned()]),
            // `eth0:1` is a name for an address of eth0 to ifconfig alone.
            ("ifconfig" | "ethtool", t) if at == 1 && !t.starts_with('-') => {
                names.push(t.split(':').next().unwrap_or(t).to_owned());
            }
            ("cat" | "ls" | "tee", t) => {
                if let Some(rest) =
                    t.strip_prefix("/sys/class/net/").or(t.strip_prefix("/proc/sys/net/ipv4/conf/"))
                {
                    names.push(rest.split('/').next().unwrap_or("").to_owned());
                }
            }
            ("sysctl", t) => {
                let key = t.strip_prefix("net.ipv4.conf.").or(t.strip_prefix("net/ipv4/conf/"));
                names.extend(key.and_then(|k| k.split(['.', '/']).next()).map(str::to_owned));
            }
            _ => {}
        }
    }
    // Whether an ifb is there a script may ask before it makes one.
    let asks = matches!(word(2), "show" | "list" | "ls") || matches!(program, "cat" | "ls");
    let virtual_one = |n: &String| ["ifb", "dummy", "veth", "br", "bond"].iter().any(|k| n.starts_with(k));
    names.retain(|n| {
        let word = matches!(n.as_str(), "up" | "dev" | "type" | "all" | "default" | "group" | "master");
        !(word || asks && virtual_one(n))
    });
    names
}

/// The device a command makes.
pub(crate) fn added(words: &[String]) -> Option<String> {
    let program = words.first()?.rsplit('/').next()?;
    match program {
        "ip" => {
            let at = words.iter().position(|w| w == "add")?;
            if at < 2 || !matches!(words[at - 1].as_str(), "link" | "l" | "li" | "tuntap" | "tunnel") {
                return None;
            }
            let mut rest = words[at + 1..].iter();
            while let Some(word) = rest.next() {
                match word.as_str() {
                    "link" | "type" | "numtxqueues" | "numrxqueues" | "txqueuelen" | "mtu" | "address"
                    | "mode" => {
                        rest.next();
                    }
                    "dev" | "name" => {}
                    name => return Some(name.to_owned()),
                }
            }
            None
        }
        "brctl" if words.get(1)? == "addbr" => words.get(2).cloned(),
        "tunctl" => words.iter().position(|w| w == "-t").and_then(|at| words.get(at + 1)).cloned(),
        "vconfig" if words.get(1)? == "add" => Some(format!("{}.{}", words.get(2)?, words.get(3)?)),
        _ => None,
    }
}

/// The name of an ifb that a command makes.
pub(crate) fn made_ifb(words: &[String]) -> Option<String> {
    let is = words.windows(2).any(|w| w[0] == "type" && w[1] == "ifb");
    added(words).filter(|_| is)
}

/// The device a command moves to another network namespace.
pub(crate) fn moved(words: &[String]) -> Option<String> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let sets =
        words[0].ends_with("ip") && matches!(word(1), "link" | "l" | "li") && matches!(word(2), "set" | "s");
    let name = if word(3) == "dev" { word(4) } else { word(3) };
    (sets && words.iter().skip(4).any(|w| w == "netns")).then(|| name.to_owned())
}

/// The device a command takes away.
pub(crate) fn deleted(words: &[String]) -> Option<String> {
    let at = words.iter().position(|w| w == "del" || w == "delete")?;
    let link =
        words[0].ends_with("ip") && matches!(words.get(at.checked_sub(1)?)?.as_str(), "link" | "l" | "li");
    let names = words[at + 1..].iter().find(|w| *w != "dev");
    names.filter(|_| link).cloned()
}
