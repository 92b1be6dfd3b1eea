//! A Redis server that speaks TLS, with a certificate authority made for it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::port::Port;
use crate::program;
use crate::redis::{RedisOptions, RedisServer};

const NAMES: &str = "subjectAltName=DNS:localhost\n";

/// A server with a TLS port; the plain port stays open for [`TlsRedis::server`].
#[derive(Debug)]
pub struct TlsRedis {
    server: RedisServer,
    port: Port,
    folder: TempDir,
}

impl TlsRedis {
    /// Makes two authorities and a certificate for `localhost` signed by the first, and starts a
    /// server with it. Clients need no certificate. `REDIS_SERVER` does
    /// not count here, since few builds speak TLS: the program is the one in PATH unless the
    /// options or `REDIS_TLS_SERVER` name another.
    pub fn start(options: RedisOptions) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("idem-tls-").tempdir()?;
        make_authority(folder.path(), "ca")?;
        make_authority(folder.path(), "stranger")?;
        make_certificate(folder.path())?;
        let port = Port::take()?;
        let program = program::find("redis-server", "REDIS_TLS_SERVER", "redis-server")?;
        let options = options.or_binary(program);
        let server = RedisServer::start(with_tls(options, port.number(), folder.path()))
            .context("a redis-server without TLS refuses `tls-port`")?;
        Ok(Self {
            server,
            port,
            folder,
        })
    }

    /// `rediss://localhost:…`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("rediss://localhost:{}/", self.port.number())
    }

    /// The same server under a name that its certificate does not have: to be refused.
    #[must_use]
    pub fn url_other_name(&self) -> String {
        format!("rediss://127.0.0.1:{}/", self.port.number())
    }

    /// The TLS port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The authority to trust, as PEM.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// An authority that did not sign the server's certificate: a client that trusts only this
    /// one must refuse the server.
    #[must_use]
    pub fn stranger_ca(&self) -> PathBuf {
        self.folder.path().join("stranger.pem")
    }

    /// The server, to be killed, frozen, restarted or asked without TLS.
    #[must_use]
    pub fn server(&self) -> &RedisServer {
        &self.server
    }
}

fn with_tls(options: RedisOptions, port: u16, folder: &Path) -> RedisOptions {
    let file = |name| folder.join(name).display().to_string();
    options
        .line(format!("tls-port {port}"))
        .line(format!("tls-cert-file {}", file("server.pem")))
        .line(format!("tls-key-file {}", file("server.key")))
        .line(format!("tls-ca-cert-file {}", file("ca.pem")))
        .line("tls-auth-clients no")
}

fn make_authority(folder: &Path, name: &str) -> Result<()> {
    let subject = format!("/CN=idem test authority {name}");
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let form = ["-x509", "-days", "2", "-subj", &subject];
    request(folder, &key, &certificate, &form)
}

fn make_certificate(folder: &Path) -> Result<()> {
    fs::write(folder.join("names"), NAMES)?;
    request(
        folder,
        "server.key",
        "server.csr",
        &["-subj", "/CN=localhost"],
    )?;
    let sign = "x509 -req -days 2 -in server.csr -out server.pem -extfile names \
                -CA ca.pem -CAkey ca.key -CAcreateserial";
    openssl(folder, &sign.split_whitespace().collect::<Vec<_>>())
}

/// Makes a key, and a request or a self-signed certificate for it.
fn request(folder: &Path, key: &str, out: &str, form: &[&str]) -> Result<()> {
    let curve = "ec_paramgen_curve:prime256v1";
    let fresh = [
        "req", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-keyout", key, "-out", out,
    ];
    openssl(folder, &[&fresh, form].concat())
}

fn openssl(folder: &Path, arguments: &[&str]) -> Result<()> {
    program::output(&program::openssl()?, folder, arguments)?;
    Ok(())
}
