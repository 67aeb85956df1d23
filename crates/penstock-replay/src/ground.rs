//! The kernels that are asked, and what their probe's programs cost there.

use penstock_model::Kernel;

/// One of them, on the machine its vectors were recorded on. Times are ns of the clock, and numbers those of the steps of `super::clock`.
#[derive(Debug)]
pub struct Ground {
    /// The profile.
    pub kernel: Kernel,
    /// The release that answers name.
    pub release: &'static str,
    /// The clock when the probe makes the line, in a fresh boot: 4.8 ms after a tick.
    pub start_ns: i64,
    /// How often a fork looks at the clock.
    pub fork_reads: u32,
    /// How often the clock is looked at once more: before something is made, and else at the program's end.
    pub late_reads: u32,
    /// Calls that fail while tc starts, and while ip does: in the folders of PATH before theirs, by the loader, the C library, libcap.
    pub tc_failures: u32,
    /// How many of these do not happen with `-j`.
    pub json_failures: u32,
    /// The same of ip.
    pub ip_failures: u32,
    /// How often tc looks in vain for the first set of header fields of `pedit` or of an extended match: wherever the loader does.
    pub first_library: u32,
    /// The same for each further one, where folders that are not there are known.
    pub next_library: u32,
    /// By how much the former is more where tc has looked for no action before.
    pub first_alone: u32,
    /// `tc -j class show` prints JSON.
    pub class_json: bool,
    /// A program that asks for a device by its name (`RTM_GETLINK`), as tc and ip do, is followed by two ticks and not by one. Seen in 7.2 by the
    /// events that `/proc/timer_list` counts; which of the kernel's timers it is was not found.
    pub link_ticks: bool,
    /// Which program that begins gives the worker its turn that frees what filters held, counted from the one that deleted them.
    pub worker_turn: u8,
}

/// Debian's Linux 6.12 with iproute2 6.1.0.
static V6_12: Ground = Ground {
    kernel: Kernel::V6_12,
    release: "6.12.117",
    start_ns: 1_004_825_783,
    fork_reads: 3,
    late_reads: 0,
    tc_failures: 21,
    json_failures: 0,
    ip_failures: 21,
    first_library: 149,
    next_library: 4,
    first_alone: 0,
    class_json: false,
    link_ticks: false,
    worker_turn: 3,
};

/// Debian's Linux 7.2 with iproute2 7.3.0.
static V7_2: Ground = Ground {
    kernel: Kernel::V7_2,
    release: "7.2.13",
    start_ns: 1_004_849_786,
    fork_reads: 3,
    late_reads: 1,
    tc_failures: 26,
    json_failures: 1,
    ip_failures: 29,
    first_library: 21,
    next_library: 5,
    first_alone: 1,
    class_json: true,
    link_ticks: true,
    worker_turn: 2,
};

impl Ground {
    /// All of them, as a specification may name them by their profile.
    pub const ALL: [&'static Ground; 2] = [&V6_12, &V7_2];

    /// That of the profile that a specification means which names none.
    pub fn newest_long_term() -> &'static Ground {
        &V6_12
    }
}
