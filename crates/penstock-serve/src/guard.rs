//! Who may ask what. A page of another site that runs in the same browser can send requests to this computer too, and can have a name of its
//! own lead here; it can neither read the token nor choose these headers.

use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode};
use std::net::{IpAddr, SocketAddr};

/// The header that carries the token.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-penstock-token");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The rules that every request is checked by.
pub(crate) struct Guard {
    at: SocketAddr,
    names: Vec<String>,
    token: String,
}

/// Why a request is refused.
pub(crate) type Refusal = (StatusCode, String);

impl Guard {
    /// For a server at an address, with a token of its own.
    pub(crate) fn new(at: SocketAddr, names: Vec<String>) -> Result<Guard, String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| format!("no randomness for a token: {e}"))?;
        let token = bytes.iter().map(|b| format!("{b:02x}")).collect();
        Ok(Guard { at, names, token })
    }
    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Whether a browser that calls this computer so was told to: otherwise another's name leads here (DNS rebinding).
    fn knows(&self, host: &str) -> bool {
        if self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
            return true;
        }
        let port = self.at.port();
        if let Ok(address) = host.parse::<SocketAddr>() {
            // Every address of this computer is its own name, where all are listened at.
            return address.port() == port && (address.ip() == self.at.ip() || self.at.ip().is_unspecified());
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            return port == 80 && address == self.at.ip();
        }
        let local = self.at.ip().is_loopback() || self.at.ip().is_unspecified();
        let named = host.strip_suffix(&format!(":{port}"));
        local && named.is_some_and(|name| name.eq_ignore_ascii_case("localhost"))
    }

    /// Lets a request pass, or says why not.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
        let no = |code, why: &str| Err((code, why.to_owned()));
        if ![Method::GET, Method::HEAD, Method::POST].contains(method) {
            return no(StatusCode::METHOD_NOT_ALLOWED, "there is GET, HEAD and POST");
        }
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|h| h.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() || !self.knows(host) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "this is {}, not {host:?}; penstock serve --name {host} lets browsers call it so",
                    self.at
                ),
            ));
        }
        let foreign =
            headers.get_all(ORIGIN).iter().any(|o| o.as_bytes() != format!("http://{host}").as_bytes());
        let site = headers.get(FETCH_SITE).map(hyper::header::HeaderValue::as_bytes);
        let site_is_own = site.is_none_or(|s| [&b"same-origin"[..], b"none"].contains(&s));
        if foreign || !site_is_own {
            return no(StatusCode::FORBIDDEN, "a page of another site may not ask here");
        }
        if method == Method::POST {
            let said = headers.get(TOKEN).map(|t| t.as_bytes()).unwrap_or_default();
            if !same(said, self.token.as_bytes()) {
                let why =
                    "what computes or writes needs the token: open the link that penstock serve printed";
                return no(StatusCode::FORBIDDEN, why);
            }
        }
        Ok(())
    }
}

/// Whether both are the same; how long it takes does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (a, b)| d | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(at: &str) -> Guard {
        Guard::new(at.parse().unwrap(), vec!["lab.example:7575".to_owned()]).unwrap()
    }
    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        of.iter().map(|(k, v)| (HeaderName::from_static(k), v.parse().unwrap())).collect()
    }

    #[test]
    fn names_of_this_computer() {
        let own = guard("127.0.0.1:7575");
        for good in ["127.0.0.1:7575", "localhost:7575", "LocalHost:7575", "lab.example:7575"] {
            assert!(own.knows(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "10.0.0.1:7575",
            "evil.example:7575",
        ] {
            assert!(!own.knows(bad), "{bad}");
        }
        let all = guard("0.0.0.0:7575");
        assert!(all.knows("10.0.0.1:7575") && all.knows("localhost:7575") && !all.knows("evil.example:7575"));
        assert!(guard("[::1]:7575").knows("[::1]:7575"));
    }

    #[test]
    fn others_are_refused() {
        let guard = guard("127.0.0.1:7575");
        let code =
            |method: Method, of: &[(&'static str, &str)]| guard.check(&method, &headers(of)).map_err(|r| r.0);
        let host = ("host", "127.0.0.1:7575");
        assert_eq!(code(Method::GET, &[host]), Ok(()));
        assert_eq!(code(Method::GET, &[host, ("sec-fetch-site", "none")]), Ok(()));
        assert_eq!(code(Method::GET, &[]), Err(StatusCode::MISDIRECTED_REQUEST));
        assert_eq!(code(Method::PUT, &[host]), Err(StatusCode::METHOD_NOT_ALLOWED));
        let foreign = [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ];
        for header in foreign {
            assert_eq!(code(Method::GET, &[host, header]), Err(StatusCode::FORBIDDEN), "{header:?}");
        }
        let token = ("x-penstock-token", guard.token());
        assert_eq!(code(Method::POST, &[host]), Err(StatusCode::FORBIDDEN));
        assert_eq!(code(Method::POST, &[host, ("x-penstock-token", "00")]), Err(StatusCode::FORBIDDEN));
        assert_eq!(code(Method::POST, &[host, ("origin", "http://127.0.0.1:7575"), token]), Ok(()));
        assert_ne!(guard.token(), self::guard("127.0.0.1:7575").token());
    }
}
