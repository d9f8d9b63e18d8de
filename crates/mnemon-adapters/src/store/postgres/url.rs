//! The address of a database, as its URL gives it.

use std::path::PathBuf;
use std::time::Duration;

use mnemon_core::{Invalid, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::pool::PATIENCE;

/// Connections of one process, unless the URL says otherwise.
const POOL: usize = 16;
/// Memory for the index of one tenant, unless the URL says otherwise: about 350,000 records with
/// vectors of 256 dimensions.
const INDEX_BYTES: usize = 256 << 20;
/// Records that a search in the database compares one by one, unless the URL says otherwise.
const INDEX_EXACT: usize = 1000;
/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After this long without an answer of the other side a connection counts as lost.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);

/// How the server's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verify {
    /// `prefer` and `require`: the connection is encrypted, but not to a server that is known.
    Nothing,
    /// `verify-full`: by the system's certificates.
    System,
    /// `verify-full` with `sslrootcert`: by those in this file.
    File(PathBuf),
}

/// Which index answers searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexMode {
    /// The one in memory for tenants that fit, the one in the database for others.
    Auto,
    Memory,
    Database,
}

/// Bytes that a record takes in an index in memory, measured with vectors of 256 dimensions.
const RECORD_BYTES: usize = 750;

/// Where the database is and how to connect to it.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) verify: Verify,
    /// Connections at the most.
    pub(super) pool: usize,
    pub(super) index: IndexMode,
    /// Bytes that the index of one tenant may take in memory, if the mode is auto.
    pub(super) index_bytes: usize,
    /// Up to so many records are all compared with a query, not looked up by words and vectors.
    pub(super) index_exact: usize,
    /// Whether pgvector is used where the server has it.
    pub(super) pgvector: bool,
    /// How long a call waits for a free connection.
    pub(super) pool_wait: Duration,
    /// Whether row-level security is to be switched on or off.
    pub(super) row_security: Option<bool>,
    /// A standby that answers searches.
    pub(super) standby: Option<Box<Address>>,
    /// The URL without its password and parameters, for messages.
    pub(super) place: String,
}

impl Address {
    /// A tenant with more records is searched in the database.
    pub(super) fn records_in_memory(&self) -> usize {
        match self.index {
            IndexMode::Memory => usize::MAX,
            IndexMode::Database => 0,
            IndexMode::Auto => self.index_bytes / RECORD_BYTES,
        }
    }

    pub(super) fn of(url: &str) -> Result<Self, StoreError> {
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut passed, mut pool, mut pool_wait) = (Vec::new(), POOL, PATIENCE);
        let (mut index, mut index_bytes) = (IndexMode::Auto, INDEX_BYTES);
        let (mut index_exact, mut pgvector) = (INDEX_EXACT, true);
        let (mut mode, mut root, mut row_security) = ("prefer", None, None);
        let mut standby = None;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=').unwrap_or((parameter, "")) {
                ("sslmode", value) => mode = value,
                ("sslrootcert", value) => root = Some(PathBuf::from(value)),
                ("pool", value) => pool = pool_size(value)?,
                ("index", value) => index = index_mode(value)?,
                ("index_mb", value) => index_bytes = megabytes(value)?,
                ("index_exact", value) => index_exact = exact(value)?,
                ("pgvector", value) => pgvector = is_on(value)?,
                ("pool_wait", value) => pool_wait = seconds(value)?,
                ("standby", value) => standby = Some(Box::new(Self::of(&at(value, rest, query)?)?)),
                ("row_security", "on") => row_security = Some(true),
                ("row_security", "off") => row_security = Some(false),
                ("row_security", _) => return Err(invalid("`row_security` must be on or off")),
                // Programs that show the URL hide the password there only.
                ("password", _) => {
                    return Err(invalid("write the password as USER:PASSWORD@HOST"));
                }
                _ => passed.push(parameter),
            }
        }
        let url = match passed.is_empty() {
            true => rest.to_owned(),
            false => format!("{rest}?{}", passed.join("&")),
        };
        // The parser's message names the parameter, never its value.
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let source = std::error::Error::source(&error);
            let reason = source.map_or_else(|| error.to_string(), ToString::to_string);
            invalid(format!("this PostgreSQL URL cannot be read: {reason}"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(invalid(
                "the URL names no server; write postgres://USER@HOST/DATABASE",
            ));
        }
        config.connect_timeout(CONNECT_TIMEOUT);
        config.tcp_user_timeout(TCP_TIMEOUT);
        config.keepalives_idle(TCP_TIMEOUT);
        if config.get_application_name().is_none() {
            config.application_name("mnemon");
        }
        let verify = verification(&mut config, mode, root)?;
        let place = place(&config);
        Ok(Self {
            config,
            verify,
            pool,
            index,
            index_bytes,
            index_exact,
            pgvector,
            pool_wait,
            row_security,
            standby,
            place,
        })
    }
}

fn invalid(what: impl Into<String>) -> StoreError {
    Invalid::new("store", what.into()).into()
}

/// The same URL with another server and without `standby`.
fn at(server: &str, rest: &str, query: &str) -> Result<String, StoreError> {
    let wrong = || invalid("`standby` must be HOST or HOST:PORT of a standby of the same database");
    if server.is_empty() || server.contains(['/', '@', ',', '%']) {
        return Err(wrong());
    }
    let (scheme, address) = rest.split_once("://").ok_or_else(wrong)?;
    let (authority, database) = address.split_once('/').unwrap_or((address, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let parameters: Vec<&str> = query
        .split('&')
        .filter(|parameter| !parameter.starts_with("standby="))
        .collect();
    let parameters = parameters.join("&");
    Ok(format!(
        "{scheme}://{user}@{server}/{database}?{parameters}"
    ))
}

fn pool_size(value: &str) -> Result<usize, StoreError> {
    let size = value.parse().ok().filter(|size| (2..=1000).contains(size));
    size.ok_or_else(|| invalid("`pool` must be a number of connections from 2 to 1000"))
}

fn index_mode(value: &str) -> Result<IndexMode, StoreError> {
    match value {
        "auto" => Ok(IndexMode::Auto),
        "memory" => Ok(IndexMode::Memory),
        "database" => Ok(IndexMode::Database),
        _ => Err(invalid("`index` must be auto, memory or database")),
    }
}

fn megabytes(value: &str) -> Result<usize, StoreError> {
    let bytes = value
        .parse()
        .ok()
        .and_then(|mb: usize| mb.checked_mul(1 << 20));
    bytes.ok_or_else(|| invalid("`index_mb` must be a number of megabytes"))
}

fn exact(value: &str) -> Result<usize, StoreError> {
    let records = value.parse().ok().filter(|records| *records <= 10_000);
    records.ok_or_else(|| invalid("`index_exact` must be a number of records up to 10000"))
}

fn is_on(value: &str) -> Result<bool, StoreError> {
    match value {
        "auto" => Ok(true),
        "off" => Ok(false),
        _ => Err(invalid("`pgvector` must be auto or off")),
    }
}

fn seconds(value: &str) -> Result<Duration, StoreError> {
    let seconds = value.parse().ok().filter(|it| (1..=600).contains(it));
    let seconds = seconds.map(Duration::from_secs);
    seconds.ok_or_else(|| invalid("`pool_wait` must be a number of seconds from 1 to 600"))
}

fn verification(
    config: &mut Config,
    mode: &str,
    root: Option<PathBuf>,
) -> Result<Verify, StoreError> {
    let (ssl, verify) = match mode {
        "disable" => (SslMode::Disable, Verify::Nothing),
        "prefer" => (SslMode::Prefer, Verify::Nothing),
        "require" => (SslMode::Require, Verify::Nothing),
        // The name is always checked, too: otherwise the owner of any certificate of the
        // authority could pretend to be the server.
        "verify-full" | "verify-ca" => {
            (SslMode::Require, root.map_or(Verify::System, Verify::File))
        }
        _ => {
            return Err(invalid(
                "`sslmode` must be disable, prefer, require or verify-full",
            ));
        }
    };
    config.ssl_mode(ssl);
    Ok(verify)
}

/// User, server and database.
fn place(config: &Config) -> String {
    let user = config.get_user().map(|user| format!("{user}@"));
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map(|port| format!(":{port}"));
    let database = config.get_dbname().map(|name| format!("/{name}"));
    format!(
        "postgres://{}{host}{}{}",
        user.unwrap_or_default(),
        port.unwrap_or_default(),
        database.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_shows_no_password() {
        let url = "postgres://ann:s3cret@db.example:5433/memory?pool=4&sslmode=require";
        let address = Address::of(url).unwrap();
        assert_eq!(address.place, "postgres://ann@db.example:5433/memory");
        assert_eq!(address.pool, 4);
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        let as_parameter = Address::of("postgresql://h/d?user=ann").unwrap();
        assert_eq!(as_parameter.place, "postgres://ann@h:5432/d");
    }

    #[test]
    fn a_wrong_url_says_what_is_wrong_without_the_password() {
        for (url, what) in [
            ("postgres://ann:s3cret@h/d?pool=0", "pool"),
            ("postgres://ann:s3cret@h/d?sslmode=maybe", "sslmode"),
            ("postgres://ann:s3cret@h/d?index=disk", "`index`"),
            ("postgres://ann:s3cret@h/d?index_mb=many", "index_mb"),
            ("postgres://ann:s3cret@h/d?pgvector=on", "pgvector"),
            ("postgres://ann:s3cret@h/d?row_security=1", "row_security"),
            ("postgres://ann:s3cret@h/d?pool_wait=0", "pool_wait"),
            ("postgres://ann:s3cret@h/d?colour=red", "colour"),
            ("postgres://ann@h/d?password=s3cret", "USER:PASSWORD@HOST"),
            ("postgres://ann:s3cret@h:port/d", "port"),
            ("postgres:///d", "names no server"),
        ] {
            let error = Address::of(url).unwrap_err().to_string();
            assert!(error.contains(what), "{url}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_certificate_is_checked_where_that_is_asked_for() {
        let verify = |query: &str| {
            let address = Address::of(&format!("postgres://h/d?{query}")).unwrap();
            (address.config.get_ssl_mode(), address.verify)
        };
        assert_eq!(verify(""), (SslMode::Prefer, Verify::Nothing));
        let full = (SslMode::Require, Verify::System);
        assert_eq!(verify("sslmode=verify-full"), full);
        let file = (SslMode::Require, Verify::File("ca.pem".into()));
        assert_eq!(verify("sslmode=verify-full&sslrootcert=ca.pem"), file);
    }
}
