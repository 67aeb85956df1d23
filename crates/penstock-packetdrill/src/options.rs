//! `setsockopt` and `getsockopt`.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `do_tcp_setsockopt`, `do_tcp_getsockopt`, net/core/sock.c `sk_setsockopt`, net/ipv4/ip_sockglue.c.

use crate::net::{Kind, Net};
use crate::script::Expr;
use crate::sys::Answer::{self, Error, Value};
use crate::sys::{Read, field, number, take_error};
use crate::words;
use penstock_model::Span;
use penstock_tcp::{Buffer, State};

/// The bytes of a text with `\xNN` in it.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hex =
            rest.strip_prefix("\\x").and_then(|r| r.get(..2)).and_then(|h| u8::from_str_radix(h, 16).ok());
        let len = match hex {
            Some(byte) => {
                bytes.push(byte);
                4
            }
            None => {
                bytes.extend(c.to_string().bytes());
                c.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    bytes
}

/// Compares what a call has put into memory with what the script says.
pub(crate) fn expects(what: &str, script: &Expr, is: i64) -> Read<()> {
    if matches!(script, Expr::Ellipsis) {
        return Ok(());
    }
    match number(script)? {
        n if n == is => Ok(()),
        n => Err(format!("Bad {what} value: expected: {n} actual: {is}")),
    }
}

fn not_here(level: &Expr, name: &Expr) -> String {
    let word = |e: &Expr| match e {
        Expr::Word(w) => w.clone(),
        Expr::Int(n) => n.to_string(),
        _ => "...".to_owned(),
    };
    format!(
        "{} of {} is not run here: SO_REUSEADDR SO_ERROR SO_SNDBUF SO_RCVBUF SO_LINGER SO_ZEROCOPY, TCP_NODELAY TCP_CORK TCP_MAXSEG \
         TCP_SYNCNT TCP_WINDOW_CLAMP TCP_CONGESTION TCP_USER_TIMEOUT TCP_NOTSENT_LOWAT \
         TCP_FASTOPEN TCP_FASTOPEN_CONNECT TCP_FASTOPEN_KEY TCP_FASTOPEN_NO_COOKIE, IP_TOS IP_MTU_DISCOVER IPV6_TCLASS are",
        word(name),
        word(level)
    )
}

/// `setsockopt`.
pub(crate) fn set(net: &mut Net, n: usize, level: &Expr, name: &Expr, value: &Expr) -> Read<Answer> {
    let (l, o) = match (number(level), number(name)) {
        (Ok(l), Ok(o)) => (l, o),
        _ => return Err(not_here(level, name)),
    };
    let now = net.now;
    if (l, o) == (1, 13) {
        let fields = match value {
            Expr::Fields(f) => f.as_slice(),
            Expr::List(list) => match &list[..] {
                [Expr::Fields(f)] => f.as_slice(),
                _ => return Err("SO_LINGER takes {onoff=1, linger=0}".to_owned()),
            },
            _ => return Err("SO_LINGER takes {onoff=1, linger=0}".to_owned()),
        };
        let get = |name: &str| field(fields, name).map_or(Ok(0), number);
        let (on, linger) = (get("onoff")?, get("linger")?);
        if on != 0 && linger != 0 {
            return Err("SO_LINGER with a time is not run here: close would wait".to_owned());
        }
        net.socks[n].lingers_not = on != 0;
        return Ok(Value(0));
    }
    if (l, o) == (6, 13) {
        let name = match value {
            Expr::Str(s) | Expr::Word(s) => s.clone(),
            Expr::List(list) => match &list[..] {
                [Expr::Str(s)] => s.clone(),
                _ => return Err("TCP_CONGESTION takes a name".to_owned()),
            },
            _ => return Err("TCP_CONGESTION takes a name".to_owned()),
        };
        if matches!(net.socks[n].kind, Kind::Tcp(_)) {
            return Err("TCP_CONGESTION on an open connection is not run here: set it before".to_owned());
        }
        return net.socks[n].cfg.set_cc(&name).map(|()| Value(0));
    }
    if (l, o) == (6, 33) {
        let Expr::Str(text) = value else { return Err("TCP_FASTOPEN_KEY takes a text of bytes".to_owned()) };
        let bytes = bytes_of(text);
        let keys: Vec<[u8; 16]> = bytes.chunks(16).filter_map(|k| k.try_into().ok()).collect();
        if !matches!(bytes.len(), 16 | 32) {
            return Ok(Error("EINVAL"));
        }
        net.socks[n].fast.keys = keys;
        return Ok(Value(0));
    }
    let v = number(value)?;
    let setting = net.host.tcp_settings().fastopen;
    let small = v.clamp(0, i64::from(u32::MAX)) as u32;
    let most = |net: &Net, key: &str| {
        net.host.setting(key).and_then(|v| v.trim().parse().ok()).unwrap_or(212_992_u32)
    };
    let (wmem, rmem) = (most(net, "net.core.wmem_max"), most(net, "net.core.rmem_max"));
    let sock = &mut net.socks[n];
    match (l, o) {
        (1, 2) | (1, 60) => {}
        (1, 7) => {
            sock.cfg.set_sndbuf(small.min(wmem));
            if let Kind::Tcp(end) = &mut sock.kind {
                end.set_sndbuf(small.min(wmem), now);
            }
        }
        (1, 8) => {
            if matches!(sock.kind, Kind::Tcp(_)) {
                return Err("SO_RCVBUF on an open connection is not run here: set it before".to_owned());
            }
            sock.cfg.set_rcvbuf(small.min(rmem));
        }
        (6, 1) => {
            sock.cfg.nodelay = v != 0;
            if let Kind::Tcp(end) = &mut sock.kind {
                end.call_nodelay(v != 0, now);
            }
        }
        (6, 2) => {
            if !(88..=32_767).contains(&v) {
                return Ok(Error("EINVAL"));
            }
            sock.maxseg = v as u16;
        }
        (6, 3) => {
            sock.cork = v != 0;
            if let Kind::Tcp(end) = &mut sock.kind {
                end.set_cork(v != 0, now);
            }
        }
        (6, 7) => {
            if !(1..=127).contains(&v) {
                return Ok(Error("EINVAL"));
            }
            sock.cfg.syn_retries = v as u8;
        }
        (6, 10) if matches!(sock.kind, Kind::Fresh | Kind::Listens(_)) => sock.cfg.window_clamp = Some(small),
        (6, 18) => {
            if v < 0 {
                return Ok(Error("EINVAL"));
            }
            sock.user_timeout = small;
            if let Kind::Tcp(end) = &mut sock.kind {
                end.set_user_timeout((small > 0).then(|| Span::from_ms(small.into())));
            }
        }
        (6, 25) => {
            sock.notsent_lowat = small;
            let own = sock.cfg.calls.map_or(u32::MAX, |c| c.notsent_lowat);
            if let Kind::Tcp(end) = &mut sock.kind {
                end.set_notsent_lowat(if small > 0 { small } else { own });
            }
        }
        //= linux v6.12 net/ipv4/tcp.c do_tcp_setsockopt
        (6, 23) if v >= 0 && matches!(sock.kind, Kind::Fresh | Kind::Listens(_)) => sock.fast.most = small,
        (6, 30) if !(0..=1).contains(&v) => return Ok(Error("EINVAL")),
        (6, 30) if setting & 1 == 0 => return Ok(Error("EOPNOTSUPP")),
        (6, 30) if matches!(sock.kind, Kind::Fresh) => sock.fast_connect = v != 0,
        (6, 34) if (0..=1).contains(&v) && matches!(sock.kind, Kind::Fresh | Kind::Listens(_)) => {
            sock.fast.no_cookie = v != 0;
        }
        (6, 23 | 30 | 34) => return Ok(Error("EINVAL")),
        (0, 1) | (41, 67) => sock.tos = v as u8 & !3,
        (0, 10) => sock.df = v != 0,
        _ => return Err(not_here(level, name)),
    }
    net.pump(n);
    Ok(Value(0))
}

/// `getsockopt`: compares with what the script says.
pub(crate) fn get(net: &mut Net, n: usize, level: &Expr, name: &Expr, value: &Expr) -> Read<Answer> {
    let (l, o) = match (number(level), number(name)) {
        (Ok(l), Ok(o)) => (l, o),
        _ => return Err(not_here(level, name)),
    };
    let info = match &net.socks[n].kind {
        Kind::Tcp(end) => Some(end.info()),
        _ => None,
    };
    let closed = info.is_none_or(|i| i.state == State::Closed);
    let size = |buffer: Buffer| i64::from(buffer.initial());
    if (l, o) == (1, 4) {
        let error = take_error(net, n).map_or(0, |e| words::errno(e).0);
        expects("getsockopt", value, error)?;
        return Ok(Value(0));
    }
    let sock = &net.socks[n];
    let is = match (l, o) {
        (1, 2) => return Ok(Value(0)),
        (1, 7) => info.map_or(size(sock.cfg.sndbuf), |i| i.sndbuf.into()),
        (1, 8) => info.map_or(size(sock.cfg.rcvbuf), |i| i.rcvbuf.into()),
        (6, 1) => sock.cfg.nodelay.into(),
        //= linux v6.12 net/ipv4/tcp.c do_tcp_getsockopt
        (6, 2) if closed && sock.maxseg > 0 => sock.maxseg.into(),
        (6, 2) => info.map_or(536, |i| i.snd_mss.into()),
        (6, 3) => sock.cork.into(),
        (6, 7) => sock.cfg.syn_retries.into(),
        (6, 18) => sock.user_timeout.into(),
        (6, 25) => sock.notsent_lowat.into(),
        (6, 23) => sock.fast.most.into(),
        (6, 30) => sock.fast_connect.into(),
        (6, 34) => sock.fast.no_cookie.into(),
        (0, 1) | (41, 67) => sock.tos.into(),
        (0, 10) => sock.df.into(),
        _ => return Err(not_here(level, name)),
    };
    expects("getsockopt", value, is)?;
    Ok(Value(0))
}
