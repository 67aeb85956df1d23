//! The words of a flower filter that look at the frame.
//!
//! Follows: iproute2 6.1.0 `tc/f_flower.c` `flower_parse_opt`, `flower_parse_mpls`.

use super::super::IP_FLAGS;
use super::super::value::{self, halves, number};
use super::{ETH_P_MPLS, Words, illegal, is_vlan};
use crate::tc::args::{Args, matches};
use crate::tc::filters::exts;
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

impl Words {
    /// The frame's words: device, hardware addresses, VLAN, MPLS, PPPoE, connection tracking.
    pub(super) fn link_layer(&mut self, args: &mut Args, word: &str) -> Result<bool, Failure> {
        let is = |full: &str| matches(word, full);
        if is("ip_flags") {
            let v = args.value()?;
            let (value, mask) = &mut self.ip_flags;
            value::flags(&v.text, &IP_FLAGS, value, mask)
                .ok_or_else(|| illegal(args, "ip_flags", "frag, nofrag, firstfrag, nofirstfrag"))?;
        } else if word == "l2_miss" {
            self.small(args, "l2_miss", 0xff, 10, "0 or 1")?;
        } else if is("ct_state") {
            let v = args.value()?;
            let help = "flags trk new est rel inv rpl, each behind + or -";
            let (flags, mask) = value::ct_state(&v.text).ok_or_else(|| illegal(args, "ct_state", help))?;
            self.o.set("ct_state", flags.into());
            self.o.set("ct_state_mask", mask.into());
        } else if is("ct_zone") {
            self.masked(args, ("ct_zone", "ct_zone_mask"), "ct_zone", 0xffff, (&[0], 0))?;
        } else if is("ct_mark") {
            self.masked(args, ("ct_mark", "ct_mark_mask"), "ct_mark", u32::MAX, (&[0], 0))?;
        } else if is("ct_label") {
            self.ct_label(args)?;
        } else if is("indev") {
            let v = args.value()?;
            let bad = |c: char| c == '/' || c.is_ascii_whitespace();
            if v.text.is_empty() || v.text.len() > 15 || v.text.contains(bad) {
                return Err(args.invarg("\"indev\" not a valid ifname", &v.text, "name a device"));
            }
            self.o.set("indev", v.text.as_str().into());
        } else if word == "num_of_vlans" {
            self.small(args, "num_of_vlans", 0xff, 10, "a number up to 255")?;
            self.num_of_vlans = self.o.u32("num_of_vlans").unwrap_or(0);
        } else if is("vlan_id") || is("vlan_prio") || is("cvlan_id") || is("cvlan_prio") {
            self.vlan(args, word)?;
        } else if is("vlan_ethtype") {
            let proto = self.vlan_ethtype(args, self.eth_type, "vlan_ethtype")?;
            (self.vlan_ethtype, self.eth_type) = (proto, proto);
        } else if is("cvlan_ethtype") {
            self.eth_type = self.vlan_ethtype(args, self.vlan_ethtype, "cvlan_ethtype")?;
        } else if is("mpls") || is("mpls_label") || is("mpls_tc") || is("mpls_bos") || is("mpls_ttl") {
            self.mpls(args, word)?;
        } else if is("dst_mac") {
            self.hardware(args, "dst_mac", "dst_mac_mask")?;
        } else if is("src_mac") {
            self.hardware(args, "src_mac", "src_mac_mask")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn ct_label(&mut self, args: &mut Args) -> Result<(), Failure> {
        let v = args.value()?;
        let (label, mask) = halves(&v.text);
        let help = "up to 32 hexadecimal digits";
        if label.len() > 32 || mask.is_some_and(|m| m.len() > 32) {
            let message = format!("{} Max allowed size 32", label.len());
            return Err(args.invarg(&message, label, help));
        }
        let bytes = value::pairs(label);
        let bytes = bytes.ok_or_else(|| args.invarg("labels must be a hex string\n", label, help))?;
        self.o.set("ct_label", Value::Bytes(bytes));
        let mask = match mask {
            None => vec![0xff; 16],
            Some(mask) => value::pairs(mask)
                .ok_or_else(|| args.invarg("labels mask must be a hex string\n", mask, help))?,
        };
        self.o.set("ct_label_mask", Value::Bytes(mask));
        Ok(())
    }

    fn vlan(&mut self, args: &mut Args, word: &str) -> Result<(), Failure> {
        let is = |full: &str| matches(word, full);
        exts::follows(args)?;
        let (name, inner, max) = if is("vlan_id") {
            ("vlan_id", false, 0xfff)
        } else if is("vlan_prio") {
            ("vlan_prio", false, 7)
        } else if is("cvlan_id") {
            ("cvlan_id", true, 0xfff)
        } else {
            ("cvlan_prio", true, 7)
        };
        let within = if inner { self.vlan_ethtype } else { self.tc_proto };
        if !is_vlan(within, self.num_of_vlans > u32::from(inner)) {
            let line = if inner {
                format!(
                    "Can't set \"{name}\" if inner vlan ethertype isn't 802.1Q or 802.1AD and num_of_vlans is less than 2"
                )
            } else {
                format!("Can't set \"{name}\" if ethertype isn't 802.1Q or 802.1AD and num_of_vlans is 0")
            };
            return Err(args.fail(line, 1, "give the filter protocol 802.1Q"));
        }
        self.small(args, name, max, 10, "a number up to 4095, a priority up to 7")
    }

    fn vlan_ethtype(&mut self, args: &mut Args, within: u16, name: &'static str) -> Result<u16, Failure> {
        let v = args.value()?;
        let inner = name == "cvlan_ethtype";
        if !is_vlan(within, self.num_of_vlans > u32::from(inner)) {
            let least = if inner { "less than 2" } else { "is 0" };
            let line =
                format!("Can't set \"{name}\" if ethertype isn't 802.1Q or 802.1AD and num_of_vlans {least}");
            return Err(args.fail(line, 1, "give the filter protocol 802.1Q"));
        }
        let proto = num::protocol(&v.text, args.kernel()).ok_or_else(|| {
            args.invarg("invalid vlan_ethtype", &v.text, "ip, ipv6, 802.1Q, or an ethertype")
        })?;
        self.o.set(name, proto.into());
        Ok(proto)
    }

    fn mpls(&mut self, args: &mut Args, word: &str) -> Result<(), Failure> {
        let is = |full: &str| matches(word, full);
        exts::follows(args)?;
        let (name, max) = if is("mpls") {
            ("mpls", 0)
        } else if is("mpls_label") {
            ("mpls_label", 0xf_ffff)
        } else if is("mpls_tc") {
            ("mpls_tc", 7)
        } else if is("mpls_bos") {
            ("mpls_bos", 1)
        } else {
            ("mpls_ttl", 0xff)
        };
        if !ETH_P_MPLS.contains(&self.eth_type) {
            let line = format!("Can't set \"{name}\" if ethertype isn't MPLS");
            return Err(args.fail(line, 1, "give the filter protocol mpls_uc"));
        }
        if name != "mpls" {
            if self.mpls_new {
                let line = format!("Can't set \"{name}\" if \"mpls\" is set");
                return Err(args.fail(line, 1, "say it behind lse"));
            }
            self.mpls_old = true;
            return self.small(args, name, max, 10, "a number within the field");
        }
        if self.mpls_old {
            let line =
                "Can't set \"mpls\" if \"mpls_label\", \"mpls_tc\", \"mpls_bos\" or \"mpls_ttl\" is set";
            return Err(args.fail(line, 1, "say all of it behind lse"));
        }
        self.mpls_new = true;
        let mut list = Vec::new();
        while args.peek_text().is_some_and(|w| matches(w, "lse")) {
            args.next_word();
            exts::follows(args)?;
            list.push(lse(args)?);
        }
        self.o.set("mpls", Value::List(list));
        Ok(())
    }
}

/// `flower_parse_mpls_lse`: one entry of the label stack.
fn lse(args: &mut Args) -> Result<Options, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let fields = [("depth", 0xff), ("label", 0xf_ffff), ("tc", 7), ("bos", 1), ("ttl", 0xff)];
        let Some((name, max)) = fields.into_iter().find(|(name, _)| matches(word, name)) else { break };
        args.next_word();
        let v = args.value()?;
        let n = number(&v.text, 10, max).filter(|&n| name != "depth" || n > 0);
        o.set(name, n.ok_or_else(|| illegal(args, name, "a number within the field"))?.into());
    }
    if !o.has("depth") {
        let line = "Error: argument \"depth\" is required";
        return Err(args.fail(line, 255, "e.g. lse depth 1 label 100").aborting());
    }
    Ok(o)
}
