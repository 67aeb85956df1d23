//! `penstock serve`.

use anyhow::{Result, bail};
use penstock_serve::{Page, Server, Settings, is_embedded};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock serve` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Open the link that it prints: the part behind # is the token without which nothing is computed or written.\n\
                  Try:  penstock serve runs"
)]
pub struct Args {
    /// The folder of runs
    #[arg(default_value = "runs")]
    folder: PathBuf,
    /// Where to listen; port 0: any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7575")]
    listen: SocketAddr,
    /// Another name that browsers call this computer by; they are refused under any that is not said
    #[arg(long, value_name = "HOST:PORT")]
    name: Vec<String>,
    /// The page, a folder that `cargo xtask web` built, in place of the one in this program
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
}

/// Does it, until it is interrupted.
pub fn main(args: &Args) -> Result<ExitCode> {
    let page = match &args.page {
        Some(folder) => Page::Folder(folder.clone()),
        None if is_embedded() => Page::Embedded,
        None => Page::None,
    };
    let settings =
        Settings { listen: args.listen, folder: args.folder.clone(), page, names: args.name.clone() };
    let server = match Server::bind(settings) {
        Ok(server) => server,
        Err(why) => bail!(why),
    };
    if !args.listen.ip().is_loopback() {
        crate::say(
            "serve: whoever reaches this address can read the folder; who has the link can run experiments",
        );
    }
    crate::print(&format!("{}\n", server.link()))?;
    server.run();
    Ok(ExitCode::SUCCESS)
}
