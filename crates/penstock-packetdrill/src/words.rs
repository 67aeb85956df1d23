//! Constants by name, and errors.
//!
//! Follows: linux v6.12 include/uapi.

/// Flags of `send`.
pub(crate) const MSG_MORE: i64 = 0x8000;
pub(crate) const MSG_EOR: i64 = 0x80;
pub(crate) const MSG_DONTWAIT: i64 = 0x40;
pub(crate) const MSG_NOSIGNAL: i64 = 0x4000;
pub(crate) const MSG_ZEROCOPY: i64 = 0x400_0000;
pub(crate) const MSG_FASTOPEN: i64 = 0x2000_0000;
/// Of `recv`.
pub(crate) const MSG_PEEK: i64 = 2;

pub(crate) const O_NONBLOCK: i64 = 0x800;
pub(crate) const POLLIN: i64 = 0x1;
pub(crate) const POLLOUT: i64 = 0x4;
pub(crate) const POLLERR: i64 = 0x8;
pub(crate) const POLLHUP: i64 = 0x10;
pub(crate) const POLLRDHUP: i64 = 0x2000;

const CONSTANTS: [(&str, i64); 60] = [
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("SOCK_NONBLOCK", O_NONBLOCK),
    ("SOCK_CLOEXEC", 0x8_0000),
    ("IPPROTO_TCP", 6),
    ("IPPROTO_UDP", 17),
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_NONBLOCK", O_NONBLOCK),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("MSG_MORE", MSG_MORE),
    ("MSG_EOR", MSG_EOR),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_ZEROCOPY", MSG_ZEROCOPY),
    ("MSG_PEEK", MSG_PEEK),
    ("POLLIN", POLLIN),
    ("POLLOUT", POLLOUT),
    ("POLLERR", POLLERR),
    ("POLLHUP", POLLHUP),
    ("POLLRDHUP", POLLRDHUP),
    ("SOL_SOCKET", 1),
    ("SOL_TCP", 6),
    ("SOL_IP", 0),
    ("IPPROTO_IP", 0),
    ("SOL_IPV6", 41),
    ("IPPROTO_IPV6", 41),
    ("SO_REUSEADDR", 2),
    ("SO_ERROR", 4),
    ("SO_SNDBUF", 7),
    ("SO_RCVBUF", 8),
    ("SO_LINGER", 13),
    ("SO_ZEROCOPY", 60),
    ("TCP_NODELAY", 1),
    ("TCP_MAXSEG", 2),
    ("TCP_CORK", 3),
    ("TCP_SYNCNT", 7),
    ("TCP_WINDOW_CLAMP", 10),
    ("TCP_CONGESTION", 13),
    ("TCP_USER_TIMEOUT", 18),
    ("TCP_NOTSENT_LOWAT", 25),
    ("TCP_FASTOPEN", 23),
    ("TCP_FASTOPEN_CONNECT", 30),
    ("TCP_FASTOPEN_KEY", 33),
    ("TCP_FASTOPEN_NO_COOKIE", 34),
    ("MSG_FASTOPEN", MSG_FASTOPEN),
    ("AF_UNSPEC", 0),
    ("IP_TOS", 1),
    ("IP_MTU_DISCOVER", 10),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IPV6_TCLASS", 67),
];

/// The number of a constant.
pub(crate) fn constant(name: &str) -> Option<i64> {
    let ioctl = [("SIOCINQ", 0x541b), ("FIONREAD", 0x541b), ("SIOCOUTQ", 0x5411), ("SIOCOUTQNSD", 0x894b)];
    CONSTANTS.iter().chain(&ioctl).find(|c| c.0 == name).map(|c| c.1)
}

const ERRORS: [(&str, i64, &str); 18] = [
    ("EBADF", 9, "Bad file descriptor"),
    ("EAGAIN", 11, "Resource temporarily unavailable"),
    ("EFAULT", 14, "Bad address"),
    ("EINVAL", 22, "Invalid argument"),
    ("EPIPE", 32, "Broken pipe"),
    ("EDESTADDRREQ", 89, "Destination address required"),
    ("ENOPROTOOPT", 92, "Protocol not available"),
    ("EOPNOTSUPP", 95, "Operation not supported"),
    ("EADDRINUSE", 98, "Address already in use"),
    ("ENETUNREACH", 101, "Network is unreachable"),
    ("ECONNRESET", 104, "Connection reset by peer"),
    ("EISCONN", 106, "Transport endpoint is already connected"),
    ("ENOTCONN", 107, "Transport endpoint is not connected"),
    ("ETIMEDOUT", 110, "Connection timed out"),
    ("ECONNREFUSED", 111, "Connection refused"),
    ("EHOSTUNREACH", 113, "No route to host"),
    ("EALREADY", 114, "Operation already in progress"),
    ("EINPROGRESS", 115, "Operation now in progress"),
];

/// The number and the words of an error.
pub(crate) fn errno(name: &str) -> (i64, &'static str) {
    ERRORS.iter().find(|e| e.0 == name).map_or((0, "Unknown error"), |e| (e.1, e.2))
}
