//! TCP's congestion controls as a machine has them: which there are, their modules and the parameters of these.
//!
//! Follows: linux v6.12 net/ipv4/tcp_cong.c `tcp_set_default_congestion_control`, `tcp_set_allowed_congestion_control`, `module_param` in
//! net/ipv4/tcp_*.c, kernel/params.c; kmod 30.
//! Differs: profile 2.6.35 shows no parameters; a namespace has the modules that its maker had when it was made. Those of others, `bbr3` and `ledbat`, are modules here too.

use super::Ran;
use crate::{Host, Output};
use penstock_model::Kernel;

/// What a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A number, below 0 too.
    Int,
    /// A number from 0 on.
    Uint,
    /// `Y` or `N`.
    Bool,
}
use Kind::{Bool, Int, Uint};

/// A parameter of a module.
#[derive(Clone, Copy, Debug)]
struct Parameter {
    name: &'static str,
    default: i64,
    kind: Kind,
    /// Its file below `/sys/module`: what may be done with it, `0` for none.
    mode: u16,
    /// Connections follow it.
    followed: bool,
}

const fn own(name: &'static str, default: i64, kind: Kind, mode: u16) -> Parameter {
    Parameter { name, default, kind, mode, followed: true }
}
const fn kept(name: &'static str, default: i64) -> Parameter {
    Parameter { name, default, kind: Int, mode: 0o644, followed: false }
}

/// A control: its name, the profile it came with, the parameters of its module.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) name: &'static str,
    from: Kernel,
    parameters: &'static [Parameter],
}

const fn control(name: &'static str, from: Kernel, parameters: &'static [Parameter]) -> Control {
    Control { name, from, parameters }
}
const OLD: Kernel = Kernel::V2_6_35;
const NEW: Kernel = Kernel::V6_12;

static CONTROLS: [Control; 19] = [
    control("bbr", NEW, &[]),
    control("bbr3", NEW, &[]),
    control(
        "bic",
        OLD,
        &[
            own("beta", 819, Int, 0o644),
            own("fast_convergence", 1, Int, 0o644),
            own("initial_ssthresh", 0, Int, 0o644),
            own("low_window", 14, Int, 0o644),
            own("max_increment", 16, Int, 0o644),
            own("smooth_part", 20, Int, 0o644),
        ],
    ),
    control(
        "cdg",
        NEW,
        &[
            own("backoff_beta", 724, Uint, 0o644),
            own("backoff_factor", 42, Uint, 0o644),
            own("hystart_detect", 3, Uint, 0o644),
            own("use_ineff", 5, Uint, 0o644),
            own("use_shadow", 1, Bool, 0o644),
            own("use_tolerance", 0, Bool, 0o644),
            own("window", 8, Int, 0o444),
        ],
    ),
    control(
        "cubic",
        OLD,
        &[
            kept("beta", 717),
            kept("bic_scale", 41),
            kept("fast_convergence", 1),
            kept("hystart", 1),
            kept("hystart_ack_delta_us", 2_000),
            kept("hystart_detect", 3),
            kept("hystart_low_window", 16),
            kept("initial_ssthresh", 0),
            kept("tcp_friendliness", 1),
        ],
    ),
    control("dctcp", NEW, &[kept("dctcp_alpha_on_init", 1_024), kept("dctcp_shift_g", 4)]),
    control("highspeed", OLD, &[]),
    control(
        "htcp",
        OLD,
        &[own("use_bandwidth_switch", 1, Int, 0o644), own("use_rtt_scaling", 1, Int, 0o644)],
    ),
    control("hybla", OLD, &[own("rtt0", 25, Int, 0o644)]),
    control("illinois", OLD, &[own("theta", 5, Int, 0), own("win_thresh", 15, Int, 0)]),
    control("ledbat", NEW, &[]),
    control("lp", OLD, &[]),
    control(
        "nv",
        NEW,
        &[
            own("nv_min_cwnd", 2, Int, 0o644),
            own("nv_pad", 10, Int, 0o644),
            own("nv_reset_period", 5, Int, 0o644),
        ],
    ),
    control("reno", OLD, &[]),
    control("scalable", OLD, &[]),
    control("vegas", OLD, &[kept("alpha", 2), kept("beta", 4), kept("gamma", 1)]),
    control("veno", OLD, &[]),
    control("westwood", OLD, &[]),
    control("yeah", OLD, &[]),
];

/// The control of this name that a profile has, as a module or within.
pub(crate) fn find(name: &str, kernel: Kernel) -> Option<&'static Control> {
    CONTROLS.iter().find(|c| c.name == name && c.from <= kernel)
}
/// The names of the controls that a profile has.
#[cfg(test)]
fn names(kernel: Kernel) -> impl Iterator<Item = &'static str> {
    CONTROLS.iter().filter(move |c| c.from <= kernel).map(|c| c.name)
}
/// The control whose module this is.
fn of_module(name: &str, kernel: Kernel) -> Option<&'static Control> {
    name.strip_prefix("tcp_").and_then(|c| find(c, kernel)).filter(|c| c.name != "reno")
}

impl Kind {
    /// `param_set_int` and its like.
    fn read(self, text: &str) -> Option<i64> {
        let text = text.trim();
        match self {
            Bool => match text.as_bytes() {
                [b'y' | b'Y' | b't' | b'T' | b'1', ..] => Some(1),
                [b'n' | b'N' | b'f' | b'F' | b'0', ..] => Some(0),
                [b'o' | b'O', b'n' | b'N', ..] => Some(1),
                [b'o' | b'O', b'f' | b'F', ..] => Some(0),
                _ => None,
            },
            Int => super::settings::long(text).filter(|&n| i32::try_from(n).is_ok()),
            Uint => super::settings::long(text).filter(|&n| u32::try_from(n).is_ok()),
        }
    }
    fn show(self, value: i64) -> String {
        match self {
            Bool => if value != 0 { "Y" } else { "N" }.to_owned(),
            _ => value.to_string(),
        }
    }
}

impl Host {
    /// What there is at once: those within the kernel, then those whose modules were loaded.
    pub(crate) fn available_controls(&self) -> String {
        let names: Vec<&str> = self.sysctl.controls.iter().map(|c| c.0).collect();
        names.join(" ")
    }
    /// What programs without rights may choose.
    pub(crate) fn allowed_controls(&self) -> String {
        let names: Vec<&str> = self.sysctl.controls.iter().filter(|c| c.1).map(|c| c.0).collect();
        names.join(" ")
    }
    /// Sets that: all of them must be there.
    //= linux v6.12 net/ipv4/tcp_cong.c tcp_set_allowed_congestion_control
    pub(crate) fn allow_controls(&mut self, names: &str) -> Result<(), &'static str> {
        let names: Vec<&str> = names.split_whitespace().collect();
        let controls = &mut self.sysctl.controls;
        if !names.iter().all(|n| controls.iter().any(|c| c.0 == *n)) {
            return Err("No such file or directory");
        }
        for c in controls {
            c.1 = names.contains(&c.0);
        }
        Ok(())
    }
    /// A module is loaded, if it is not there yet.
    pub(crate) fn register_control(&mut self, c: &Control) {
        if !self.sysctl.controls.iter().any(|r| r.0 == c.name) {
            // TCP_CONG_NON_RESTRICTED
            self.sysctl.controls.push((c.name, c.name == "bbr"));
        }
    }
    /// Sets the default of new sockets.
    //= linux v6.12 net/ipv4/tcp_cong.c tcp_set_default_congestion_control
    pub(crate) fn set_control(&mut self, name: &str) -> Result<(), &'static str> {
        let c = find(name, self.kernel).ok_or("No such file or directory")?;
        self.register_control(c);
        let space = self.space;
        let Some(entry) = self.sysctl.controls.iter_mut().find(|r| r.0 == c.name) else { return Ok(()) };
        if space > 0 && !entry.1 {
            return Err("Operation not permitted");
        }
        entry.1 = true;
        self.sysctl.congestion_control = name.to_owned();
        Ok(())
    }

    /// `modprobe tcp_NAME PARAMETER=VALUE…`; `None`: it is no module of these.
    pub(super) fn modprobe_control(&mut self, name: &str, values: &[String], remove: bool) -> Option<Ran> {
        let c = of_module(name, self.kernel)?;
        let there = self.sysctl.controls.iter().any(|r| r.0 == c.name);
        if remove {
            if self.sysctl.congestion_control == c.name || c.name == "cubic" {
                let text = match c.name {
                    "cubic" => format!("modprobe: FATAL: Module {name} is builtin.\n"),
                    _ => format!("modprobe: FATAL: Module {name} is in use.\n"),
                };
                return Some(Output::fail(text, 1, "it is what new connections have"));
            }
            self.sysctl.controls.retain(|r| r.0 != c.name);
            self.sysctl.parameters.retain(|&(of, _), _| of != c.name);
            return Some(Output::default());
        }
        if there {
            return Some(Output::default());
        }
        let failed = |why: &str| {
            Some(Output::fail(format!("modprobe: ERROR: could not insert '{name}': {why}\n"), 1, ""))
        };
        let mut set = Vec::new();
        for value in values {
            let Some((key, value)) = value.split_once('=') else { continue };
            // What it has not is told to the kernel's log alone.
            let Some(p) = c.parameters.iter().find(|p| p.name == key) else { continue };
            let Some(number) = p.kind.read(value) else { return failed("Invalid argument") };
            //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_register
            match (c.name, key) {
                ("cdg", "backoff_beta") if number > 1_024 => return failed("Numerical result out of range"),
                ("cdg", "window") if !(1..=256).contains(&number) => {
                    return failed("Numerical result out of range");
                }
                ("cdg", "window") if number.count_ones() != 1 => return failed("Invalid argument"),
                _ => set.push((p, number)),
            }
        }
        self.register_control(c);
        for (p, number) in set {
            self.set_parameter(c, p, number);
        }
        Some(Output::default())
    }
    fn set_parameter(&mut self, c: &Control, p: &Parameter, value: i64) {
        if value == p.default {
            self.sysctl.parameters.remove(&(c.name, p.name));
        } else {
            self.sysctl.parameters.insert((c.name, p.name), value);
        }
    }
    /// Parameters that are set and that connections do not follow: a sentence each.
    pub(crate) fn unfollowed_parameters(&self) -> Vec<String> {
        let all = self.sysctl.parameters.iter().filter_map(|(&(of, name), value)| {
            let p = find(of, self.kernel)?.parameters.iter().find(|p| p.name == name && !p.followed)?;
            Some(format!("tcp_{of} {name}={value}: not simulated; it is {} whatever it is set to", p.default))
        });
        all.collect()
    }

    /// The control and the parameter of a file below `/sys/module`, where the module is there.
    fn parameter_of(&self, path: &str) -> Option<(&'static Control, &'static Parameter)> {
        let (module, name) = path.strip_prefix("/sys/module/")?.split_once("/parameters/")?;
        let c = of_module(module, self.kernel)?;
        let there = self.sysctl.controls.iter().any(|r| r.0 == c.name);
        let p = c.parameters.iter().find(|p| p.name == name && p.mode > 0)?;
        (there && self.kernel > Kernel::V2_6_35).then_some((c, p))
    }
    /// The text of `/sys/module/tcp_NAME/parameters/PARAMETER`.
    pub(crate) fn read_parameter(&self, path: &str) -> Option<String> {
        let (c, p) = self.parameter_of(path)?;
        let value = self.sysctl.parameters.get(&(c.name, p.name)).copied().unwrap_or(p.default);
        Some(format!("{}\n", p.kind.show(value)))
    }
    /// Writes it; `None`: there is no such file.
    pub(crate) fn write_parameter(&mut self, path: &str, text: &str) -> Option<Result<(), &'static str>> {
        let (c, p) = self.parameter_of(path)?;
        if p.mode & 0o200 == 0 {
            return Some(Err("Permission denied"));
        }
        let Some(value) = p.kind.read(text) else { return Some(Err("Invalid argument")) };
        self.set_parameter(c, p, value);
        Some(Ok(()))
    }
    /// The parameters in `/sys/module/tcp_NAME/parameters`.
    pub(crate) fn list_parameters(&self, path: &str) -> Option<Vec<String>> {
        let c = of_module(path.strip_prefix("/sys/module/")?.strip_suffix("/parameters")?, self.kernel)?;
        let there = self.sysctl.controls.iter().any(|r| r.0 == c.name);
        let names: Vec<String> =
            c.parameters.iter().filter(|p| p.mode > 0).map(|p| p.name.to_owned()).collect();
        (there && !names.is_empty() && self.kernel > Kernel::V2_6_35).then_some(names)
    }
    /// The modules of controls that are loaded.
    pub(super) fn control_modules(&self) -> impl Iterator<Item = String> + '_ {
        let within = ["reno", "cubic"];
        self.sysctl.controls.iter().filter(move |c| !within.contains(&c.0)).map(|c| format!("tcp_{}", c.0))
    }
    /// Whether this is a module of a control.
    pub(super) fn has_control_module(&self, name: &str) -> bool {
        of_module(name, self.kernel).is_some()
    }
}

/// The parameters that connections follow: control, name, what it begins with.
pub fn followed_parameters() -> impl Iterator<Item = (&'static str, &'static str, i64)> {
    let all = CONTROLS.iter().flat_map(|c| c.parameters.iter().map(move |p| (c, p)));
    all.filter(|(_, p)| p.followed).map(|(c, p)| (c.name, p.name, p.default))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Time;

    fn host() -> Host {
        Host::new("h", Kernel::V6_12, 1)
    }
    fn said(host: &mut Host, line: &str) -> (i32, String) {
        let out = host.exec(line, Time::ZERO);
        (out.status, format!("{}{}", out.stdout, out.stderr))
    }

    #[test]
    fn a_module_makes_a_control_available() {
        let mut h = host();
        let available = "cat /proc/sys/net/ipv4/tcp_available_congestion_control";
        let allowed = "cat /proc/sys/net/ipv4/tcp_allowed_congestion_control";
        assert_eq!(said(&mut h, available).1, "reno cubic\n");
        assert_eq!(said(&mut h, "modprobe tcp_htcp"), (0, String::new()));
        assert_eq!(said(&mut h, "modprobe tcp-bbr"), (0, String::new()));
        assert_eq!(said(&mut h, "sysctl -qw net.ipv4.tcp_congestion_control=yeah"), (0, String::new()));
        assert_eq!(said(&mut h, available).1, "reno cubic htcp bbr yeah\n");
        assert_eq!(said(&mut h, allowed).1, "reno cubic bbr yeah\n");
        assert!(said(&mut h, "lsmod").1.contains("tcp_htcp "));
        assert_eq!(
            said(&mut h, "modprobe -r tcp_yeah"),
            (1, "modprobe: FATAL: Module tcp_yeah is in use.\n".to_owned())
        );
        assert_eq!(said(&mut h, "modprobe -r tcp_htcp"), (0, String::new()));
        assert_eq!(said(&mut h, available).1, "reno cubic bbr yeah\n");
        let (status, text) = said(&mut h, "modprobe tcp_turbo");
        assert_eq!(status, 1);
        assert!(text.starts_with("modprobe: FATAL: Module tcp_turbo not found in directory"), "{text}");
        assert_eq!(said(&mut h, "modprobe -q tcp_turbo"), (1, String::new()));
    }

    #[test]
    fn what_is_allowed_must_be_there() {
        let mut h = host();
        let set = "sysctl -w net.ipv4.tcp_allowed_congestion_control=";
        let (status, text) = said(&mut h, &format!("{set}htcp"));
        assert_eq!(status, 1);
        assert!(text.contains("No such file or directory"), "{text}");
        said(&mut h, "modprobe tcp_htcp");
        assert_eq!(said(&mut h, &format!("{set}\"reno htcp\"")).0, 0);
        assert_eq!(h.setting("net.ipv4.tcp_allowed_congestion_control").unwrap(), "reno htcp");
    }

    #[test]
    fn parameters_are_set_with_the_module_or_after() {
        let mut h = host();
        let file = "/sys/module/tcp_cdg/parameters/";
        assert_eq!(h.read_file(&format!("{file}use_shadow")), Err("No such file or directory"));
        assert_eq!(said(&mut h, "modprobe tcp_cdg window=16 use_tolerance=y nonsense=1"), (0, String::new()));
        assert_eq!(h.read_file(&format!("{file}window")).unwrap(), "16\n");
        assert_eq!(h.read_file(&format!("{file}use_tolerance")).unwrap(), "Y\n");
        assert_eq!(h.write_file(&format!("{file}backoff_factor"), "100\n", Time::ZERO), Ok(()));
        assert_eq!(h.write_file(&format!("{file}window"), "32", Time::ZERO), Err("Permission denied"));
        assert_eq!(h.write_file(&format!("{file}use_ineff"), "many", Time::ZERO), Err("Invalid argument"));
        let want = [("cdg", "backoff_factor", 100), ("cdg", "use_tolerance", 1), ("cdg", "window", 16)];
        assert_eq!(h.tcp_settings().parameters, want);
        // What is loaded already is not loaded anew.
        said(&mut h, "modprobe tcp_cdg window=4");
        assert_eq!(h.read_file(&format!("{file}window")).unwrap(), "16\n");
        let refused = "modprobe: ERROR: could not insert 'tcp_hybla': Invalid argument\n";
        assert_eq!(said(&mut h, "modprobe tcp_hybla rtt0=long"), (1, refused.to_owned()));
        said(&mut h, "modprobe -r tcp_cdg");
        let (_, text) = said(&mut h, "modprobe tcp_cdg window=12");
        assert!(text.ends_with("Invalid argument\n"), "{text}");
        assert!(h.unsimulated().is_empty());
        said(&mut h, "modprobe tcp_vegas alpha=3");
        assert_eq!(h.unsimulated(), ["h: tcp_vegas alpha=3: not simulated; it is 2 whatever it is set to"]);
    }

    #[test]
    fn a_profile_has_those_of_its_time() {
        let mut old = Host::new("h", Kernel::V2_6_35, 1);
        assert_eq!(said(&mut old, "modprobe tcp_bic").0, 0);
        assert_eq!(said(&mut old, "modprobe tcp_cdg").0, 1);
        assert!(names(Kernel::V2_6_35).all(|n| !["bbr", "cdg", "dctcp", "nv"].contains(&n)));
    }
}
