//! One Chromium of its own, driven by the `WebDriver` protocol.

use std::fs::File;
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use idem_tests::port::Port;
use idem_tests::process::{Process, tied};
use idem_tests::program;
use idem_tests::wait::until;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(10);

/// The driver with its browser, which keeps its profile in a temporary folder. All of it goes with
/// the handle, also when the test panics.
#[derive(Debug)]
pub(crate) struct Driver {
    process: Process,
    folder: TempDir,
    port: Port,
}

impl Driver {
    /// Starts the driver; the browser comes with the session.
    pub(crate) fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("idem-page-").tempdir()?;
        let port = Port::take()?;
        let log = File::create(folder.path().join("log"))?;
        let program = program::find("chromedriver", "CHROMEDRIVER", "chromium-driver")?;
        let mut command = tied(program);
        command
            .arg(format!("--port={}", port.number()))
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let process = Process::start(command)?;
        until("the start of chromedriver", START, || {
            Ok(TcpStream::connect(("127.0.0.1", port.number()))?)
        })?;
        Ok(Self {
            process,
            folder,
            port,
        })
    }

    /// A window, in English whatever this machine speaks.
    pub(crate) async fn open(&self) -> Result<Client> {
        let profile = self.folder.path().join("profile");
        let options = json!({
            "args": [
                "--headless=new",
                "--lang=en",
                "--window-size=1300,1400",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                // Root may start it only so; it sees nothing but our own page.
                "--no-sandbox",
                // With it the browser ends when its driver does, however that ends.
                "--remote-debugging-pipe",
                format!("--user-data-dir={}", profile.display()),
            ],
            "prefs": { "intl.accept_languages": "en" },
        });
        let capabilities: Map<String, Value> =
            Map::from_iter([("goog:chromeOptions".to_owned(), options)]);
        ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&self.url(""))
            .await
            .context("no browser: `apt-get install chromium`")
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port.number())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Lets it close the browser; a kill would follow anyway.
        let _ = ureq::get(self.url("/shutdown")).call();
        let _ = self.process.wait(STOP);
    }
}
