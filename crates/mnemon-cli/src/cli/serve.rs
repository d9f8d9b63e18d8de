//! `mnemon serve`

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use mnemon_core::Invalid;
use mnemon_engine::longterm::Mode;

use super::door::{Door, key, not_indexed};
use super::mcp::as_server;
use super::out::{self, Out};
use mnemon_operations::config::AccessSettings;
use mnemon_operations::{Error, wiring};
use mnemon_server::http::{self, Access, Background, HttpLimits, Routes, TlsFiles};
use mnemon_server::mcp::{Options, Profile, Served};

/// Serve this memory over HTTP: the API under /v1, MCP at /mcp, the reference at /docs
///
/// Without a key only this machine is served. The server stops at Ctrl-C or SIGTERM: it finishes the
/// requests that it has begun. A second signal ends it at once. SIGHUP reads the configuration again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon serve\n  \
    mnemon serve --listen 127.0.0.1:9000 --log json\n  \
    mnemon serve --tls-cert fullchain.pem --tls-key privkey.pem --allow-host memory.example.org\n  \
    MNEMON_API_KEY_FILE=key.txt mnemon serve --listen 0.0.0.0:8750 --allow-host memory.example.org\n\n\
    See docs/server.md for keys, limits and monitoring.")]
pub(super) struct Args {
    /// Address to listen on; other machines need a key [env: MNEMON_API_KEY, MNEMON_API_KEY_FILE]
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8750", value_parser = address)]
    listen: SocketAddr,
    /// Additional host name of this server, besides localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Origin of a web page that may call this server, as https://NAME:PORT; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Certificate of the server with its intermediates, in PEM: serve https [env: MNEMON_TLS_CERT]
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM [env: MNEMON_TLS_KEY]
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Format of the log on stderr, one line per request
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log: Log,
    /// Seconds between two slices of upkeep and learning; 0 does none
    #[arg(long, value_name = "N", default_value = "60")]
    upkeep: u64,
}

/// An address to listen on. `localhost` is this machine, whatever its files of names say.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:");
    let address = match named {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    address.parse().map_err(|_| {
        "write IP:PORT, for example 127.0.0.1:8750, 0.0.0.0:8750 or localhost:8750".to_owned()
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Log {
    /// A line for people
    Text,
    /// An object for programs
    Json,
    /// Nothing
    None,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let meter = Arc::default();
    let memory = door.metered_memory(&meter)?;
    match args.log {
        Log::None => {}
        Log::Text => out::log_lines(),
        Log::Json => out::log_json(),
    }
    let folder = wiring::agents_folder(&door.config);
    if folder.is_dir() && !door.config.may_index_agents() {
        door.out.note(&not_indexed(&folder));
    }
    let options = Options {
        tools: vec![Profile::Small],
        user: None,
        long_term: Mode::Agent,
        structured: false,
        remote: None,
    };
    let served = Served::new(as_server(&door.config, "http", None), memory, options)?;
    let tls = tls_files(args.tls_cert, args.tls_key, &door.config.access)?;
    let access = Access {
        key: key(&door.config)?,
        hosts: args.allow_host.clone(),
        origins: args.allow_origin,
        tls: tls.clone(),
    };
    let reload = door.reload.clone();
    let out = &door.out;
    let every = (args.upkeep > 0).then(|| Duration::from_secs(args.upkeep));
    let has_variable = door.config.api_key.is_some();
    let ready = |address, needs_key| {
        let key = match (needs_key, has_variable) {
            (true, true) => " -H \"Authorization: Bearer $MNEMON_API_KEY\"",
            (true, false) => " -H 'Authorization: Bearer KEY'",
            (false, _) => "",
        };
        announce(out, address, key, tls.as_ref(), &args.allow_host);
    };
    let routes = Routes::All(Background {
        upkeep: every,
        meter,
        reload,
        commands: super::command,
    });
    let limits = HttpLimits::default();
    http::serve(
        served,
        routes,
        args.listen,
        access,
        limits,
        http::stop_signal(),
        ready,
    )
    .await
}

/// Prints where the server is, and a command to try.
fn announce(out: &Out, address: SocketAddr, key: &str, tls: Option<&TlsFiles>, hosts: &[String]) {
    let listened = match address.ip().is_unspecified() {
        true => format!("listening on all addresses ({address}), "),
        false => String::new(),
    };
    let address = reachable(address);
    let (url, cert) = match tls {
        Some(tls) => {
            let shown = tls.shown(hosts, address);
            let cert = format!(" --cacert {}", tls.cert.display());
            (format!("https://{shown}"), cert)
        }
        None => (format!("http://{address}"), String::new()),
    };
    out.note(&format!(
        "{listened}serving at {url}, reference at {url}/docs"
    ));
    out.note(&format!(
        "try: curl{cert}{key} {url}/v1/search -H 'Content-Type: application/json' \
         -d '{{\"query\": \"what does Ann drink\"}}'"
    ));
}

/// The address under which this machine reaches a server that listens on all of its addresses.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// The certificate and its key, from the options or else from the settings.
fn tls_files(
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    settings: &AccessSettings,
) -> Result<Option<TlsFiles>, Invalid> {
    let cert = cert.or_else(|| settings.tls_cert.clone());
    let key = key.or_else(|| settings.tls_key.clone());
    let missing = |option, other| {
        let what = format!("is missing: {other} needs it, too");
        Err(Invalid::new(option, what))
    };
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key })),
        (Some(_), None) => missing("--tls-key", "--tls-cert"),
        (None, Some(_)) => missing("--tls-cert", "--tls-key"),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_reached_by_that_of_this_machine() {
        for (listened, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:80", "10.0.0.7:80"),
        ] {
            assert_eq!(reachable(listened.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn localhost_is_this_machine() {
        let parsed = |text| address(text).map(|address| address.to_string());
        assert_eq!(parsed("localhost:8799").as_deref(), Ok("127.0.0.1:8799"));
        assert_eq!(parsed("[::1]:1").as_deref(), Ok("[::1]:1"));
        for wrong in ["localhost", "localhost:99999", "example.org:80", ""] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
