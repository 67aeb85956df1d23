//! `print_action`.

use super::{Form, Out};
use crate::tc::actions::print_actions;
use penstock_model::{Kernel, Options};

pub fn print(messages: &[(u32, Vec<Options>)], form: &Form, kernel: Kernel) -> String {
    let mut out = Out::new(form, kernel, true);
    for (total, actions) in messages {
        if !out.old() {
            out.open_object(None);
            out.num("total acts", total, format_args!("total acts {total}"));
            out.nl();
            out.close_object();
        }
        out.open_object(None);
        print_actions(actions, false, &mut out);
        out.close_object();
    }
    out.finish()
}
