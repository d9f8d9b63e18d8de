//! From a URL to a search server, or to a folder or a bucket of tables.

use std::path::PathBuf;
use std::time::Duration;

use mnemon_core::Invalid;

use crate::http::Secret;

/// How long a request to a search server may take, in seconds.
const TIMEOUT_S: u64 = 30;
/// The same at the most.
const TIMEOUT_MOST_S: u64 = 600;
/// Characters of the name of an index.
const NAME_CHARS: usize = 100;

/// Characters of the path in a bucket.
const PATH_CHARS: usize = 500;

/// Where an index is: `opensearch://HOST:PORT/NAME`, `milvus://HOST:PORT/NAME`, `lance:FOLDER` or
/// `lance:s3://BUCKET/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexUrl {
    pub kind: IndexKind,
    pub uses_tls: bool,
    /// `HOST:PORT`, or the name of a bucket; empty for a folder.
    pub address: String,
    /// The name of the index in its server, or the path of the folder or in the bucket.
    pub name: String,
    /// How long a request may take, or the wait for other processes that write to the folder.
    pub timeout: Duration,
    text: String,
}

/// The kind of a search server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    OpenSearch,
    Milvus,
    /// Lance tables in a folder or a bucket, which need no search server.
    Lance,
}

impl IndexKind {
    /// The port that servers of this kind usually have.
    fn port(self) -> u16 {
        match self {
            Self::OpenSearch => 9200,
            Self::Milvus => 19530,
            Self::Lance => 0,
        }
    }
}

/// The schemes, each with its kind and whether it uses TLS.
const SCHEMES: [(&str, IndexKind, bool); 4] = [
    ("opensearch", IndexKind::OpenSearch, false),
    ("opensearch+https", IndexKind::OpenSearch, true),
    ("milvus", IndexKind::Milvus, false),
    ("milvus+https", IndexKind::Milvus, true),
];

/// The scheme of Lance tables.
const LANCE: &str = "lance:";
/// The scheme of object stores after it.
const S3: &str = "s3";

fn invalid(what: String) -> Invalid {
    Invalid::new("index", what)
}

impl IndexUrl {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if let Some(path) = text.strip_prefix(LANCE) {
            return match path.split_once("://") {
                Some((scheme, rest)) => Self::of_bucket(text, scheme, rest),
                None => Self::of_folder(text, path),
            };
        }
        let (scheme, rest) = text.split_once("://").unwrap_or((text, ""));
        let known = SCHEMES.iter().find(|(name, ..)| *name == scheme);
        let Some((_, kind, uses_tls)) = known else {
            return Err(invalid(format!(
                "`{}` is not an index; write `builtin`, lance:FOLDER, lance:s3://BUCKET/PATH, \
                 opensearch://HOST:PORT/NAME or milvus://HOST:PORT/NAME, with +https before :// to \
                 use TLS",
                scheme.escape_debug()
            )));
        };
        if rest.contains('@') {
            return Err(invalid(
                "holds a user or a password; set MNEMON_INDEX_USER and MNEMON_INDEX_PASSWORD \
                 instead"
                    .to_owned(),
            ));
        }
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, name) = rest.split_once('/').unwrap_or((rest, ""));
        check_host(host)?;
        check_name(name)?;
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Self {
            kind: *kind,
            uses_tls: *uses_tls,
            address: match has_port {
                true => host.to_owned(),
                false => format!("{host}:{}", kind.port()),
            },
            name: name.to_owned(),
            timeout: timeout(options)?,
            text: text.to_owned(),
        })
    }

    /// A folder; `lance:///x` and `lance:/x` both mean /x.
    fn of_folder(text: &str, path: &str) -> Result<Self, Invalid> {
        let path = match path.strip_prefix("//") {
            Some(rest) if rest.starts_with('/') => rest,
            Some(_) => return Err(invalid("names a host; write lance:FOLDER".to_owned())),
            None => path,
        };
        if path.is_empty() {
            return Err(invalid("names no folder; write lance:FOLDER".to_owned()));
        }
        Ok(Self {
            kind: IndexKind::Lance,
            uses_tls: false,
            address: String::new(),
            name: path.to_owned(),
            timeout: Duration::from_secs(TIMEOUT_S),
            text: text.to_owned(),
        })
    }

    /// A path in a bucket of an object store. The keys and the address of the store are not in it.
    fn of_bucket(text: &str, scheme: &str, rest: &str) -> Result<Self, Invalid> {
        if scheme != S3 {
            return Err(invalid(format!(
                "`{}` is not an object store for Lance tables; write lance:s3://BUCKET/PATH or \
                 lance:FOLDER",
                scheme.escape_debug()
            )));
        }
        if rest.contains('@') {
            return Err(invalid(
                "holds a key; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead".to_owned(),
            ));
        }
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        check_bucket(bucket)?;
        check_path(path)?;
        Ok(Self {
            kind: IndexKind::Lance,
            uses_tls: false,
            address: bucket.to_owned(),
            name: path.to_owned(),
            timeout: timeout(options)?,
            text: text.to_owned(),
        })
    }

    /// The bucket of an index of Lance tables in an object store.
    pub fn bucket(&self) -> Option<&str> {
        let is_bucket = self.kind == IndexKind::Lance && !self.address.is_empty();
        is_bucket.then_some(self.address.as_str())
    }

    /// The folder of an index of Lance tables.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(&self.name)
    }

    /// The URL as it was written. It holds no password.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the server is on this machine.
    fn is_loopback(&self) -> bool {
        if self.kind == IndexKind::Lance {
            return true;
        }
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse();
        host == "localhost" || address.is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}

fn check_host(host: &str) -> Result<(), Invalid> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    match !host.is_empty() && !host.starts_with(':') && host.chars().all(is_valid) {
        true => Ok(()),
        false => Err(invalid(format!(
            "`{}` is not a host; write SCHEME://HOST:PORT/NAME",
            host.escape_debug()
        ))),
    }
}

fn check_bucket(bucket: &str) -> Result<(), Invalid> {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
    match (3..=63).contains(&bucket.len()) && bucket.chars().all(is_valid) {
        true => Ok(()),
        false => Err(invalid(format!(
            "`{}` is not a name of a bucket: use 3 to 63 lower-case letters, digits, - and .",
            bucket.escape_debug()
        ))),
    }
}

/// A path whose parts are the same in URLs and in the names of objects.
fn check_path(path: &str) -> Result<(), Invalid> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    let is_part = |part: &str| part.contains(|c| c != '.') && part.chars().all(is_valid);
    match path.len() <= PATH_CHARS && path.split('/').all(is_part) {
        true => Ok(()),
        false => Err(invalid(format!(
            "`{}` is not a path in a bucket: write lance:s3://BUCKET/PATH, with up to {PATH_CHARS} \
             letters, digits, -, _, ., = and single / in the path",
            path.escape_debug()
        ))),
    }
}

/// A name that servers accept.
fn check_name(name: &str) -> Result<(), Invalid> {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    match begins && name.len() <= NAME_CHARS && name.chars().all(is_valid) {
        true => Ok(()),
        false => Err(invalid(format!(
            "`{}` is not a name of an index: use up to {NAME_CHARS} lower-case letters, digits and \
             _, and begin with a letter",
            name.escape_debug()
        ))),
    }
}

fn timeout(options: &str) -> Result<Duration, Invalid> {
    let mut seconds = TIMEOUT_S;
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let value = option.strip_prefix("timeout_s=");
        let value = value.and_then(|value| value.parse().ok());
        seconds = value
            .filter(|value| (1..=TIMEOUT_MOST_S).contains(value))
            .ok_or_else(|| {
                invalid(format!(
                    "`{}` is not an option; write timeout_s=N with N from 1 to {TIMEOUT_MOST_S}",
                    option.escape_debug()
                ))
            })?;
    }
    Ok(Duration::from_secs(seconds))
}

/// What a search server is shown.
#[derive(Debug, Clone, Default)]
pub struct IndexAccess {
    pub user: Option<String>,
    pub password: Option<Secret>,
    /// Certificates, in PEM, that sign the server's, besides those of the system.
    pub authorities: Vec<u8>,
}

impl IndexAccess {
    /// `USER:PASSWORD`, for the header of a request. It is not for messages.
    pub fn credentials(&self) -> Option<String> {
        let (user, password) = (self.user.as_ref()?, self.password.as_ref()?);
        Some(format!("{user}:{}", password.reveal()))
    }

    /// A password goes over the network only if the connection is encrypted.
    pub fn check(&self, url: &IndexUrl) -> Result<(), Invalid> {
        if self.password.is_some() && !url.uses_tls && !url.is_loopback() {
            return Err(invalid(format!(
                "{} would send a password without encryption; use the scheme with +https",
                url.as_str()
            )));
        }
        if self.password.is_some() != self.user.is_some() {
            return Err(invalid(
                "needs both MNEMON_INDEX_USER and MNEMON_INDEX_PASSWORD, or neither".to_owned(),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let url = IndexUrl::parse("opensearch://search.example/memory").unwrap();
        assert_eq!(
            (url.uses_tls, url.address.as_str()),
            (false, "search.example:9200")
        );
        let url = IndexUrl::parse("opensearch+https://[::1]:9201/a_1?timeout_s=5").unwrap();
        assert_eq!((url.uses_tls, url.timeout.as_secs()), (true, 5));
        assert_eq!(
            (url.address.as_str(), url.name.as_str()),
            ("[::1]:9201", "a_1")
        );
        let url = IndexUrl::parse("milvus://search.example/memory").unwrap();
        assert_eq!(
            (url.kind, url.address.as_str()),
            (IndexKind::Milvus, "search.example:19530")
        );
        assert!(IndexUrl::parse("milvus+https://h/n").unwrap().uses_tls);
    }

    #[test]
    fn folders_of_tables_are_read() {
        for (text, folder) in [
            ("lance:vectors", "vectors"),
            ("lance:/var/lib/a@b?c d", "/var/lib/a@b?c d"),
            ("lance:///srv/vectors", "/srv/vectors"),
        ] {
            let url = IndexUrl::parse(text).unwrap();
            assert_eq!((url.kind, url.as_str()), (IndexKind::Lance, text));
            assert_eq!(url.folder(), std::path::Path::new(folder));
        }
        for text in ["lance:", "lance://", "lance://vectors"] {
            let error = IndexUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains("write lance:FOLDER"), "{error}");
        }
    }

    #[test]
    fn buckets_of_tables_are_read() {
        let url = IndexUrl::parse("lance:s3://my-bucket/team/memory=1?timeout_s=5").unwrap();
        assert_eq!(url.kind, IndexKind::Lance);
        assert_eq!(url.bucket(), Some("my-bucket"));
        let rest = (url.name.as_str(), url.timeout.as_secs());
        assert_eq!(rest, ("team/memory=1", 5));
        for text in ["lance:vectors", "milvus://h/n"] {
            assert_eq!(IndexUrl::parse(text).unwrap().bucket(), None);
        }
    }

    #[test]
    fn other_urls_are_refused_with_what_to_write() {
        for (text, expected) in [
            (
                "lance:gs://bucket/memory",
                "`gs` is not an object store for Lance tables; write lance:s3://BUCKET/PATH",
            ),
            ("lance:s3://k:secret@b/p", "set AWS_ACCESS_KEY_ID"),
            ("lance:s3:///memory", "`` is not a name of a bucket"),
            ("lance:s3://My_Bucket/memory", "`My_Bucket` is not a name"),
            ("lance:s3://bucket", "write lance:s3://BUCKET/PATH"),
            ("lance:s3://bucket/", "`` is not a path in a bucket"),
            ("lance:s3://bucket/a/../b", "is not a path in a bucket"),
            ("lance:s3://bucket/a//b", "is not a path in a bucket"),
            ("lance:s3://bucket/a%2Fb", "is not a path in a bucket"),
            ("lance:s3://bucket/a?region=x", "is not an option"),
            (
                "elastic://h/n",
                "`elastic` is not an index; write `builtin`",
            ),
            ("opensearch://u:secret@h/n", "set MNEMON_INDEX_USER"),
            ("opensearch:///n", "`` is not a host"),
            ("opensearch://h", "`` is not a name"),
            ("opensearch://h/Memory", "`Memory` is not a name"),
            ("opensearch://h/n?timeout_s=0", "write timeout_s=N"),
            ("opensearch://h/n?shards=2", "`shards=2` is not an option"),
        ] {
            let error = IndexUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_password_is_not_sent_in_the_clear() {
        let access = IndexAccess {
            user: Some("ann".to_owned()),
            password: Some(Secret::new("secret")),
            ..IndexAccess::default()
        };
        let check = |url: &str| access.check(&IndexUrl::parse(url).unwrap());
        assert!(check("opensearch://localhost/n").is_ok());
        assert!(check("opensearch://127.0.0.1:9200/n").is_ok());
        assert!(check("opensearch+https://search.example/n").is_ok());
        let error = check("opensearch://search.example/n").unwrap_err();
        assert!(error.to_string().contains("+https"), "{error}");
    }
}
