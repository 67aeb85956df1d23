//! The page of the browser and a folder of runs, served from this computer for its own browser.
//!
//! Follows: RFC 9110 and 9112, by hyper. Bound to loopback unless told otherwise; who may ask what stands in [`guard`].

mod guard;
mod page;
mod routes;
mod runs;

pub use page::{Page, is_embedded};

use hyper_util::rt::{TokioIo, TokioTimer};
use routes::Site;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// Most connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a browser may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Most bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;

/// What is served, and to whom.
pub struct Settings {
    /// The address to listen at; port 0: any that is free.
    pub listen: SocketAddr,
    /// The folder of runs.
    pub folder: PathBuf,
    /// The page.
    pub page: Page,
    /// Other names that browsers call this computer by, as `lab.example:7575`; its address and `localhost` need not be among them.
    pub names: Vec<String>,
}

/// A server that listens.
pub struct Server {
    runtime: tokio::runtime::Runtime,
    listener: tokio::net::TcpListener,
    site: Arc<Site>,
    stop: Arc<Notify>,
}

/// Ends a server.
#[derive(Clone)]
pub struct Stop(Arc<Notify>);

impl Stop {
    /// Has [`Server::run`] return. What is being answered is broken off.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Listens, and answers nobody yet.
    ///
    /// # Errors
    /// A sentence: the folder or the page is not there, the address is taken, or there is no randomness for the token.
    pub fn bind(settings: Settings) -> Result<Server, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
        let listen = settings.listen;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(listen));
        let listener = listener.map_err(|e| format!("cannot listen at {listen}: {e}"))?;
        let at = listener.local_addr().map_err(|e| e.to_string())?;
        let site = Arc::new(Site::new(settings, at)?);
        Ok(Server { runtime, listener, site, stop: Arc::default() })
    }

    /// Where a browser finds it, with the token that lets it ask for work.
    pub fn link(&self) -> String {
        format!("http://{}/#token={}", self.site.guard.at(), self.site.guard.token())
    }

    /// What ends it.
    pub fn stopper(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Answers until it is stopped.
    pub fn run(self) {
        let Server { runtime, listener, site, stop } = self;
        runtime.block_on(async {
            tokio::select! {
                () = stop.notified() => {}
                () = accept(listener, site) => {}
            }
        });
        // A run that nobody waits for any more ends at its next step.
        runtime.shutdown_background();
    }
}

async fn accept(listener: tokio::net::TcpListener, site: Arc<Site>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of descriptors, or the other side has gone: others may be served.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let site = site.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let site = site.clone();
                async move { Ok::<_, Infallible>(routes::answer(&site, request).await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
            // What a browser does wrong ends its connection, and nothing else.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}
