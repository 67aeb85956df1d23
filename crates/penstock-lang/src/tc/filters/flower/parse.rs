//! The words of a flower filter.
//!
//! Follows: iproute2 6.1.0 `tc/f_flower.c` `flower_parse_opt`.

mod link;

use super::value::{self, halves, number};
use super::{
    ENC_FLAGS, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6, ETH_P_RARP, ICMP, ICMPV6, PPP_PROTOCOLS, SCTP, TCP, UDP,
    USAGE, icmp_names, port_names, range_names, tunnel,
};
use crate::tc::args::{Args, matches};
use crate::tc::filters::{FilterHead, exts};
use crate::tc::kinds::{helped, what_is};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const ETH_P_ALL: u16 = 3;
const ETH_P_MPLS: [u16; 2] = [0x8847, 0x8848];
const ETH_P_PPP_SES: u16 = 0x8864;
const ETH_P_CFM: u16 = 0x8902;

/// What is known while the words are read.
struct Words {
    o: Options,
    tc_proto: u16,
    eth_type: u16,
    vlan_ethtype: u16,
    num_of_vlans: u32,
    ip_proto: u32,
    mpls_old: bool,
    mpls_new: bool,
    /// `ip_flags` and `enc_flags` with their masks.
    ip_flags: (u32, u32),
    enc_flags: (u32, u32),
}

fn illegal(args: &Args, name: &str, help: &str) -> Failure {
    args.fail(format!("Illegal \"{name}\""), 1, help)
}

fn is_vlan(eth_type: u16, enough: bool) -> bool {
    eth_type == 0x8100 || eth_type == 0x88a8 || enough
}

pub fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = exts::strict_handle(given.handle, args)?;
    let tc_proto = given.protocol;
    let mut w = Words {
        o: Options::new(),
        tc_proto,
        eth_type: tc_proto,
        vlan_ethtype: 0,
        num_of_vlans: 0,
        ip_proto: 0xff,
        mpls_old: false,
        mpls_new: false,
        ip_flags: (0, 0),
        enc_flags: (0, 0),
    };
    let mut flags = 0u32;
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("classid") || is("flowid") {
            w.o.set("classid", exts::classid(args)?.into());
        } else if is("hw_tc") {
            let id = hw_tc(args, given.parent.0)?;
            w.o.set("classid", id.into());
        } else if is("verbose") {
            flags |= 16;
        } else if is("skip_hw") {
            flags |= exts::SKIP_HW;
        } else if is("skip_sw") {
            flags |= exts::SKIP_SW;
        } else if w.link_layer(args, &word.text)?
            || w.network(args, &word.text)?
            || w.tunnel(args, &word.text)?
        {
        } else if is("action") {
            exts::action(args, &mut w.o, "Illegal \"action\"")?;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is(
                args,
                &word.text,
                USAGE,
                "e.g. flower ip_proto tcp dst_port 80 classid 1:10",
            ));
        }
    }
    w.o.set("flags", flags.into());
    if w.ip_flags.1 != 0 {
        w.o.set("ip_flags", w.ip_flags.0.into());
        w.o.set("ip_flags_mask", w.ip_flags.1.into());
    }
    if w.enc_flags.1 != 0 {
        w.o.set("enc_flags", w.enc_flags.0.into());
        w.o.set("enc_flags_mask", w.enc_flags.1.into());
    }
    if tc_proto != ETH_P_ALL {
        w.o.set("eth_type", tc_proto.into());
    }
    Ok((handle, Some(w.o)))
}

/// `hw_tc`: a class beyond the queues.
fn hw_tc(args: &mut Args, parent: u32) -> Result<u32, Failure> {
    let v = args.value()?;
    let tc = match num::strtoul(&v.text, 0) {
        Some((n, "")) => n as u32,
        None if v.text.is_empty() => 0,
        _ => return Err(args.fail("Illegal TC index", 1, "a number up to 15")),
    };
    if tc >= 16 {
        return Err(args.fail("TC index exceeds max range", 1, "a number up to 15"));
    }
    Ok(parent & 0xffff_0000 | (tc + 0xffe0))
}

impl Words {
    /// A number of up to `max` where the rest is `name`'s.
    fn small(
        &mut self,
        args: &mut Args,
        name: &'static str,
        max: u32,
        base: u32,
        help: &str,
    ) -> Result<(), Failure> {
        let v = args.value()?;
        let n = number(&v.text, base, max).ok_or_else(|| illegal(args, name, help))?;
        self.o.set(name, n.into());
        Ok(())
    }
    fn hardware(&mut self, args: &mut Args, name: &'static str, mask: &'static str) -> Result<(), Failure> {
        let v = args.value()?;
        match value::masked_hardware(&v.text) {
            Ok((value, bits)) => {
                self.o.set(name, Value::Bytes(value.to_vec()));
                self.o.set(mask, Value::Bytes(bits.to_vec()));
                Ok(())
            }
            Err(said) => {
                Err(illegal(args, name, "a hardware address, e.g. 02:00:00:00:00:01/40").said_before(&said))
            }
        }
    }
    /// `VALUE[/MASK]` of at most `max`, in these bases.
    fn masked(
        &mut self,
        args: &mut Args,
        names: (&'static str, &'static str),
        word: &str,
        max: u32,
        bases: (&[u32], u32),
    ) -> Result<(), Failure> {
        let v = args.value()?;
        let (value, mask) = halves(&v.text);
        let read = |text: &str, bases: &[u32]| bases.iter().find_map(|&base| number(text, base, max));
        let help = "a number, with /MASK for some of its bits";
        let value = read(value, bases.0).ok_or_else(|| illegal(args, word, help))?;
        let mask = match mask {
            Some(mask) => read(mask, &[bases.1]).ok_or_else(|| illegal(args, word, help))?,
            None => max,
        };
        self.o.set(names.0, value.into());
        self.o.set(names.1, mask.into());
        Ok(())
    }
    fn prefix(
        &mut self,
        args: &mut Args,
        six: Option<bool>,
        four: (&'static str, &'static str),
        names6: (&'static str, &'static str),
    ) -> Result<(), Failure> {
        let v = args.value()?;
        let prefix = value::prefix(args, &v.text, six)?;
        let names = if prefix.six { names6 } else { four };
        self.o.set(names.0, Value::Bytes(prefix.address));
        self.o.set(names.1, Value::Bytes(prefix.mask));
        Ok(())
    }

    /// The words of IP and above, and of ARP.
    fn network(&mut self, args: &mut Args, word: &str) -> Result<bool, Failure> {
        let is = |full: &str| matches(word, full);
        let family = |eth_type: u16| match eth_type {
            ETH_P_IP => Some(Some(false)),
            ETH_P_IPV6 => Some(Some(true)),
            0 => Some(None),
            _ => None,
        };
        let arp = matches!(self.eth_type, ETH_P_ARP | ETH_P_RARP);
        if is("ip_proto") {
            self.ip_proto(args)?;
        } else if is("ip_tos") {
            self.masked(args, ("ip_tos", "ip_tos_mask"), "ip_tos", 0xff, (&[10, 16], 16))?;
        } else if is("ip_ttl") {
            self.masked(args, ("ip_ttl", "ip_ttl_mask"), "ip_ttl", 0xff, (&[10, 16], 16))?;
        } else if is("dst_ip") || is("src_ip") {
            let dst = is("dst_ip");
            exts::follows(args)?;
            let Some(six) = family(self.eth_type) else {
                args.next_word();
                let name = if dst { "dst_ip" } else { "src_ip" };
                return Err(illegal(args, name, "give the filter protocol ip or ipv6"));
            };
            if dst {
                self.prefix(args, six, ("ipv4_dst", "ipv4_dst_mask"), ("ipv6_dst", "ipv6_dst_mask"))?;
            } else {
                self.prefix(args, six, ("ipv4_src", "ipv4_src_mask"), ("ipv6_src", "ipv6_src_mask"))?;
            }
        } else if is("dst_port") {
            self.port(args, true)?;
        } else if is("src_port") {
            self.port(args, false)?;
        } else if is("tcp_flags") {
            let names = ("tcp_flags", "tcp_flags_mask");
            self.masked(args, names, "tcp_flags", 0xfff, (&[16], 16))?;
        } else if is("type") || is("code") {
            let code = !is("type");
            let name = if code { "icmp code" } else { "icmp type" };
            exts::follows(args)?;
            let Some(names) = icmp_names(self.eth_type, self.ip_proto, code) else {
                args.next_word();
                return Err(illegal(args, name, "say ip_proto icmp or icmpv6 first"));
            };
            self.masked(args, names, name, 0xff, (&[10], 10))?;
        } else if word == "l2tpv3_sid" || word == "spi" {
            self.session(args, word)?;
        } else if is("arp_tip") || is("arp_sip") || is("arp_op") {
            let name = if is("arp_tip") {
                "arp_tip"
            } else if is("arp_sip") {
                "arp_sip"
            } else {
                "arp_op"
            };
            exts::follows(args)?;
            if !arp {
                args.next_word();
                return Err(illegal(args, name, "give the filter protocol arp"));
            }
            match name {
                "arp_tip" => self.prefix(args, Some(false), ("arp_tip", "arp_tip_mask"), ("", ""))?,
                "arp_sip" => self.prefix(args, Some(false), ("arp_sip", "arp_sip_mask"), ("", ""))?,
                _ => self.arp_op(args)?,
            }
        } else if is("arp_tha") {
            self.hardware(args, "arp_tha", "arp_tha_mask")?;
        } else if is("arp_sha") {
            self.hardware(args, "arp_sha", "arp_sha_mask")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn ip_proto(&mut self, args: &mut Args) -> Result<(), Failure> {
        let v = args.value()?;
        let is = |full: &str| matches(&v.text, full);
        let help = "tcp, udp, sctp, icmp, icmpv6 or a hexadecimal number";
        let unfit = |args: &Args| {
            let said = "Illegal \"eth_type\" for ip proto\n";
            Err(illegal(args, "ip_proto", "give the filter protocol ip or ipv6").said_before(said))
        };
        if self.eth_type != ETH_P_IP && self.eth_type != ETH_P_IPV6 {
            return unfit(args);
        }
        self.ip_proto = if is("tcp") {
            TCP
        } else if is("udp") {
            UDP
        } else if is("sctp") {
            SCTP
        } else if is("icmp") {
            if self.eth_type != ETH_P_IP {
                return unfit(args);
            }
            ICMP
        } else if is("icmpv6") {
            if self.eth_type != ETH_P_IPV6 {
                return unfit(args);
            }
            ICMPV6
        } else {
            match v.text.as_str() {
                "l2tp" => 115,
                "esp" => 50,
                "ah" => 51,
                text => number(text, 16, 0xff).ok_or_else(|| illegal(args, "ip_proto", help))?,
            }
        };
        self.o.set("ip_proto", self.ip_proto.into());
        Ok(())
    }

    fn port(&mut self, args: &mut Args, dst: bool) -> Result<(), Failure> {
        let v = args.value()?;
        let name = if dst { "dst_port" } else { "src_port" };
        let bad = |args: &Args| illegal(args, name, "a port, PORT/MASK or PORT-PORT; say ip_proto tcp first");
        let port = |text: &str| number(text, 10, 0xffff);
        let (low, high) = v.text.split_once('-').map_or((v.text.as_str(), None), |(l, h)| (l, Some(h)));
        let (min, max) = (port(low), high.map(port));
        let names = port_names(self.ip_proto, dst);
        match (min, max) {
            (Some(min), Some(Some(max))) if min != 0 && max != 0 => {
                if max <= min {
                    let said = "max value should be greater than min value\n";
                    return Err(bad(args).said_before(said));
                }
                if names.is_none() {
                    return Err(bad(args));
                }
                let (from, to) = range_names(dst);
                self.o.set(from, min.into());
                self.o.set(to, max.into());
            }
            (Some(min), None | Some(Some(0))) if min != 0 => {
                let (value, _) = names.ok_or_else(|| bad(args))?;
                self.o.set(value, min.into());
            }
            (None, _) | (_, Some(None)) if low.contains('/') => {
                let (value, mask) = names.ok_or_else(|| bad(args))?;
                let (port, bits) = halves(low);
                let read = |text: Option<&str>| text.and_then(|t| number(t, 0, 0xffff));
                let (Some(port), Some(bits)) = (read(Some(port)), read(bits)) else { return Err(bad(args)) };
                self.o.set(value, port.into());
                self.o.set(mask, bits.into());
            }
            _ => return Err(bad(args)),
        }
        Ok(())
    }

    fn arp_op(&mut self, args: &mut Args) -> Result<(), Failure> {
        let v = args.value()?;
        let (op, mask) = halves(&v.text);
        let op = match op {
            "request" => Some(1),
            "reply" => Some(2),
            text => number(text, 10, 2),
        };
        let mask = mask.map_or(Some(0xff), |m| number(m, 10, 0xff));
        let (Some(op), Some(mask)) = (op, mask) else {
            return Err(illegal(args, "arp_op", "request, reply, 0, 1 or 2"));
        };
        self.o.set("arp_op", op.into());
        self.o.set("arp_op_mask", mask.into());
        Ok(())
    }

    /// `spi` and `l2tpv3_sid`, which bring their own complaints.
    fn session(&mut self, args: &mut Args, word: &str) -> Result<(), Failure> {
        let v = args.value()?;
        let spi = word == "spi";
        let fits = if spi { matches!(self.ip_proto, UDP | 50 | 51) } else { self.ip_proto == 115 };
        if !fits {
            let line = if spi {
                "Can't set \"spi\" if ip_proto isn't ESP/UDP/AH"
            } else {
                "Can't set \"l2tpv3_sid\" if ip_proto isn't l2tp"
            };
            return Err(args.fail(line, 1, "say ip_proto first"));
        }
        let n = num::u32(&v.text, if spi { 16 } else { 10 });
        let name = if spi { "spi index" } else { "l2tpv3 session id" };
        let n = n.ok_or_else(|| illegal(args, name, "a number"))?;
        self.o.set(if spi { "spi" } else { "l2tpv3_sid" }, n.into());
        Ok(())
    }

    /// The words of PPPoE, of tunnels and of CFM.
    fn tunnel(&mut self, args: &mut Args, word: &str) -> Result<bool, Failure> {
        let is = |full: &str| matches(word, full);
        const OPTS: [&str; 3] = ["geneve_opts", "vxlan_opts", "erspan_opts"];
        if word == "pppoe_sid" || word == "ppp_proto" {
            self.ppp(args, word)?;
        } else if is("enc_dst_ip") {
            let four = ("enc_ipv4_dst", "enc_ipv4_dst_mask");
            self.prefix(args, None, four, ("enc_ipv6_dst", "enc_ipv6_dst_mask"))?;
        } else if is("enc_src_ip") {
            let four = ("enc_ipv4_src", "enc_ipv4_src_mask");
            self.prefix(args, None, four, ("enc_ipv6_src", "enc_ipv6_src_mask"))?;
        } else if is("enc_key_id") {
            self.small(args, "enc_key_id", u32::MAX, 10, "a number")?;
        } else if is("enc_dst_port") {
            self.small(args, "enc_dst_port", 0xffff, 10, "a port")?;
        } else if is("enc_tos") {
            self.masked(args, ("enc_tos", "enc_tos_mask"), "enc_tos", 0xff, (&[10, 16], 16))?;
        } else if is("enc_ttl") {
            self.masked(args, ("enc_ttl", "enc_ttl_mask"), "enc_ttl", 0xff, (&[10, 16], 16))?;
        } else if let Some(name) = OPTS
            .into_iter()
            .find(|name| is(name))
            .or_else(|| ["gtp_opts", "pfcp_opts"].into_iter().find(|name| word == *name))
        {
            let v = args.value()?;
            match tunnel::parse(name, &v.text) {
                Ok((of, keys, masks)) => {
                    self.o.set("enc_opts_type", of.into());
                    self.o.set("enc_opts", Value::List(keys));
                    self.o.set("enc_opts_mask", Value::List(masks));
                }
                Err(said) => {
                    return Err(
                        illegal(args, name, "the parts of an option between colons").said_before(&said)
                    );
                }
            }
        } else if word == "enc_flags" {
            let v = args.value()?;
            let (value, mask) = &mut self.enc_flags;
            value::flags(&v.text, &ENC_FLAGS, value, mask)
                .ok_or_else(|| illegal(args, "enc_flags", "tuncsum, tundf, tunoam, tuncrit"))?;
        } else if word == "cfm" {
            self.cfm(args)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn ppp(&mut self, args: &mut Args, word: &str) -> Result<(), Failure> {
        let v = args.value()?;
        if self.eth_type != ETH_P_PPP_SES {
            let line = format!("Can't set \"{word}\" if ethertype isn't PPPoE session");
            return Err(args.fail(line, 1, "give the filter protocol ppp_ses"));
        }
        if word == "pppoe_sid" {
            let sid = number(&v.text, 10, 0xffff).ok_or_else(|| illegal(args, "pppoe_sid", "a number"))?;
            self.o.set("pppoe_sid", sid.into());
            return Ok(());
        }
        let named = PPP_PROTOCOLS.iter().find(|p| p.1.eq_ignore_ascii_case(&v.text)).map(|p| p.0);
        let proto = named.or_else(|| num::u16(&v.text, 0));
        let proto = proto.ok_or_else(|| args.invarg("invalid ppp_proto", &v.text, "ip, ipv6, mpls_uc, …"))?;
        self.eth_type = match proto {
            0x21 => ETH_P_IP,
            0x57 => ETH_P_IPV6,
            0x281 => ETH_P_MPLS[0],
            0x283 => ETH_P_MPLS[1],
            _ => self.eth_type,
        };
        self.o.set("ppp_proto", proto.into());
        Ok(())
    }

    fn cfm(&mut self, args: &mut Args) -> Result<(), Failure> {
        exts::follows(args)?;
        if self.eth_type != ETH_P_CFM {
            let line = "Can't set attribute if ethertype isn't CFM";
            return Err(args.fail(line, 1, "give the filter protocol cfm"));
        }
        let mut o = Options::new();
        while let Some(word) = args.peek_text().filter(|w| matches!(*w, "mdl" | "op")) {
            args.next_word();
            let v = args.value()?;
            let (name, long) = if word == "mdl" { ("mdl", "cfm md level") } else { ("op", "cfm opcode") };
            let n = number(&v.text, 10, 0xff).ok_or_else(|| illegal(args, long, "a number up to 255"))?;
            o.set(name, n.into());
        }
        self.o.set("cfm", o.into());
        Ok(())
    }
}
