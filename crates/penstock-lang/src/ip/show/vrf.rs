//! `ip vrf show`.
//!
//! Follows: iproute2 6.1.0 `ip/ipvrf.c` `ipvrf_print`, `ipvrf_show`.

use crate::ip::Form;
use crate::show::Out;
use penstock_model::Kernel;

/// The VRFs there are: name and table of each.
pub fn vrfs(all: &[(String, u32)], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    out.text_only(format_args!("{:<16}  {:>5}\n-----------------------\n", "Name", "Table"));
    for (name, table) in all {
        out.open_object(None);
        out.string("name", name, format_args!("{name:<16}"));
        out.num("table", table, format_args!(" {table:>5}"));
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
