//! What is where.
//!
//! | request | answer |
//! |---|---|
//! | `GET /`, `/main.js` … | the page |
//! | `GET /runs/` | the runs of the folder, to look at and to compare |
//! | `GET /runs/PATH` | a file of the folder |
//! | `GET /compare?a=RUN&b=RUN` | the comparison of two runs |
//! | `GET /api/runs` | the runs as JSON |
//! | `POST /api/ask` | the answer to a question of `penstock-ask`, a line of JSON; before it lines of progress |
//! | `POST /api/ask?keep=NAME` | the same of a `run`, whose folder is kept as NAME |

use crate::Settings;
use crate::guard::Guard;
use crate::page::Files;
use crate::runs::Runs;
use http_body_util::{BodyExt as _, Full, Limited, combinators::BoxBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use penstock_model::Diagnostic;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Most bytes of a question.
const QUESTION: usize = 32 << 20;
/// How long a browser may take to send one.
const SENDING: Duration = Duration::from_secs(60);
/// Stack of a thread that answers: scripts may stand deep within themselves.
const STACK: usize = 64 << 20;

/// The page loads nothing from elsewhere, and sends nothing there. The report in its frame has its scripts within it.
const OF_PAGE: &str = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
                       img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// What lies in the folder may come from anybody: its scripts run as those of no site, and reach nothing.
const OF_RUNS: &str = "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src 'unsafe-inline'; \
                       style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Our own lists have no scripts at all.
const OF_LISTS: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// All that is served.
pub(crate) struct Site {
    pub(crate) guard: Guard,
    page: Files,
    runs: Runs,
    /// As many questions are worked on at a time as there are processors.
    workers: Arc<Semaphore>,
}

impl Site {
    pub(crate) fn new(settings: Settings, at: SocketAddr) -> Result<Site, String> {
        Ok(Site {
            guard: Guard::new(at, settings.names)?,
            page: Files::open(settings.page)?,
            runs: Runs::open(&settings.folder)?,
            workers: Arc::new(Semaphore::new(penstock_lab::many::processors())),
        })
    }
}

/// The answer to a request.
pub(crate) async fn answer(site: &Arc<Site>, request: Request<Incoming>) -> Answer {
    let head = request.method() == Method::HEAD;
    let mut answer = match site.guard.check(request.method(), request.headers()) {
        Err((code, why)) => text(code, &why),
        Ok(()) if request.method() == Method::POST => post(site, request).await,
        Ok(()) => get(site, request.uri().path(), request.uri().query().unwrap_or_default()).await,
    };
    if head {
        *answer.body_mut() = full(Bytes::new());
    }
    let headers = answer.headers_mut();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

async fn get(site: &Arc<Site>, path: &str, query: &str) -> Answer {
    let Some(path) = plain(path) else { return not_found() };
    // Reading may take a while: the others are answered meanwhile.
    let (site, query) = (site.clone(), query.to_owned());
    let read = tokio::task::spawn_blocking(move || file(&site, &path, &query));
    read.await
        .unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "a fault of penstock; please report it"))
}

fn file(site: &Site, path: &str, query: &str) -> Answer {
    match path {
        "" if matches!(site.page, Files::None) => html(OF_LISTS, site.runs.page(false)),
        "" => match site.page.read("index.html") {
            Some(index) => html(OF_PAGE, served(&String::from_utf8_lossy(&index))),
            None => not_found(),
        },
        "runs" | "runs/" => html(OF_LISTS, site.runs.page(!matches!(site.page, Files::None))),
        "api/runs" => with(StatusCode::OK, "application/json", None, site.runs.json().to_string().into()),
        "compare" => {
            let fields = fields(query);
            let field = |name: &str| fields.iter().find(|(k, _)| k == name).map_or("", |(_, v)| v.as_str());
            match site.runs.compare(field("a"), field("b")) {
                Ok(page) => html(OF_RUNS, page),
                Err(why) => text(StatusCode::BAD_REQUEST, &why),
            }
        }
        _ => match path.strip_prefix("runs/") {
            Some(below) => match site.runs.file(below) {
                Some((kind, bytes)) => with(StatusCode::OK, kind, Some(OF_RUNS), bytes.into()),
                None => not_found(),
            },
            None => match site.page.read(path) {
                Some(bytes) => {
                    with(StatusCode::OK, kind(path), Some(OF_PAGE), Bytes::from(bytes.into_owned()))
                }
                None => not_found(),
            },
        },
    }
}

/// The page, with a word that tells it by whom it is served.
fn served(index: &str) -> String {
    let word = format!("<head>\n<meta name=\"penstock-serve\" content=\"{}\">", env!("CARGO_PKG_VERSION"));
    index.replacen("<head>", &word, 1)
}

async fn post(site: &Arc<Site>, request: Request<Incoming>) -> Answer {
    let keep = match (request.uri().path(), fields(request.uri().query().unwrap_or_default()).as_slice()) {
        ("/api/ask", []) => None,
        ("/api/ask", [(name, value)]) if name == "keep" => match site.runs.place(value) {
            Ok(place) => Some((value.clone(), place)),
            Err(why) => return text(StatusCode::BAD_REQUEST, &why),
        },
        _ => return not_found(),
    };
    let json =
        request.headers().get(CONTENT_TYPE).is_some_and(|t| t.as_bytes().starts_with(b"application/json"));
    if !json {
        return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a question is application/json");
    }
    let too_large = || text(StatusCode::PAYLOAD_TOO_LARGE, "a question has at most 32 MiB");
    let length = request.headers().get(CONTENT_LENGTH).and_then(|l| l.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|l| l > QUESTION as u64) {
        return too_large();
    }
    let body = tokio::time::timeout(SENDING, Limited::new(request.into_body(), QUESTION).collect());
    let question = match body.await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return too_large(),
        Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the question did not come within a minute"),
    };
    let question: Value = match serde_json::from_slice(&question) {
        Ok(question) => question,
        Err(e) => return text(StatusCode::BAD_REQUEST, &format!("the question is not JSON: {e}")),
    };
    if keep.is_some() && question["ask"] != "run" {
        return text(StatusCode::BAD_REQUEST, "what is kept is a run");
    }
    let Ok(place) = site.workers.clone().acquire_owned().await else { return not_found() };
    let (tell, told) = mpsc::unbounded_channel();
    let work = move || {
        let answer =
            work(&question, keep.as_ref().map(|(name, place)| (name.as_str(), place.as_path())), &tell);
        let _ = tell.send(Bytes::from(answer + "\n"));
        drop(place);
    };
    let thread = std::thread::Builder::new().name("question".to_owned()).stack_size(STACK).spawn(work);
    if let Err(e) = thread {
        return text(StatusCode::SERVICE_UNAVAILABLE, &format!("no thread to answer: {e}"));
    }
    let mut answer = Response::new(Lines(told).boxed());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    answer
}

/// Ends the thread of a question whose answer nobody waits for any more.
struct Gone;

/// Answers a question; tells of progress in steps of a hundredth.
fn work(
    question: &Value,
    keep: Option<(&str, &std::path::Path)>,
    tell: &mpsc::UnboundedSender<Bytes>,
) -> String {
    let mut shown = 0.0;
    let mut progress = |share: f64| {
        if tell.is_closed() {
            // Past the panic's message: nothing is wrong.
            std::panic::resume_unwind(Box::new(Gone));
        }
        if share - shown >= 0.01 {
            shown = share;
            let _ = tell.send(Bytes::from(format!("{}\n", json!({ "progress": share }))));
        }
    };
    let answered = std::panic::catch_unwind(AssertUnwindSafe(|| match keep {
        None => penstock_ask::answer(question, &mut progress),
        Some((name, place)) => {
            let (outcome, mut answer) = penstock_ask::ran(question, &mut progress)?;
            outcome.write(place).map_err(|why| vec![Diagnostic::error(why)])?;
            answer["kept"] = json!(format!("runs/{name}/"));
            Ok(answer)
        }
    }));
    let fault = || vec![Diagnostic::error("a fault of penstock; please report it with what you asked")];
    penstock_ask::told(answered.unwrap_or_else(|_| Err(fault())))
}

/// Lines as they come.
struct Lines(mpsc::UnboundedReceiver<Bytes>);

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}

/// A path without its first `/` and its escapes; `None` where a part of it is hidden, leads upwards, or holds what no file of ours does.
fn plain(path: &str) -> Option<String> {
    let path = percent_encoding::percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok()?;
    let sound = |part: &str| !part.starts_with('.') && !part.contains(['\\', '\0']);
    let mut parts = path.split('/');
    let last = parts.next_back().unwrap_or_default();
    (parts.all(|part| sound(part) && !part.is_empty()) && sound(last)).then(|| path.clone().into_owned())
}

/// The fields of a query, as a form sends them.
fn fields(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
    };
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(name), decoded(value))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// The media type of a file by its name.
pub(crate) fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, suffix)| suffix) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "txt" | "csv" | "toml" | "sh" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn full(bytes: Bytes) -> BoxBody<Bytes, Infallible> {
    Full::new(bytes).boxed()
}

fn with(code: StatusCode, kind: &'static str, policy: Option<&'static str>, bytes: Bytes) -> Answer {
    let mut answer = Response::new(full(bytes));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let policy = policy.unwrap_or("default-src 'none'; frame-ancestors 'none'");
    answer.headers_mut().insert("content-security-policy", HeaderValue::from_static(policy));
    answer
}

fn html(policy: &'static str, page: String) -> Answer {
    with(StatusCode::OK, "text/html; charset=utf-8", Some(policy), page.into())
}

fn text(code: StatusCode, why: &str) -> Answer {
    with(code, "text/plain; charset=utf-8", None, format!("{why}\n").into())
}

fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "there is nothing here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_nowhere_else() {
        for good in ["", "main.js", "runs/", "runs/a b/report.html", "runs/ä/tc/r.txt"] {
            let sent = format!("/{}", good.replace(' ', "%20").replace('ä', "%C3%A4"));
            assert_eq!(plain(&sent).as_deref(), Some(good));
        }
        let bad = "/.. /../x /runs/../../etc/passwd /%2e%2e/x /runs/%2e%2e%2fx //etc/passwd /runs//x /a%00b /.git/config /a%5c..%5cb /%ff x";
        for bad in bad.split(' ') {
            assert_eq!(plain(bad), None, "{bad}");
        }
    }

    #[test]
    fn fields_of_a_form() {
        assert_eq!(
            fields("a=x+y&b=%2Fz&c"),
            [("a", "x y"), ("b", "/z"), ("c", "")].map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert!(fields("").is_empty());
    }
}
