//! TLS: the certificate of the server and its key, which SIGHUP reads again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use mnemon_core::Invalid;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{InconsistentKeys, ServerConfig};
use tokio_rustls::TlsAcceptor;

use mnemon_operations::Error;

/// The files of a certificate and its private key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A certificate that is in use.
pub(super) struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    pub(super) fn open(files: TlsFiles) -> Result<Self, Error> {
        let config = RwLock::new(Arc::new(read(&files)?));
        Ok(Self { files, config })
    }

    /// Reads the files again. If that fails, the known certificate stays in use.
    pub(super) fn reload(&self) -> Result<(), Error> {
        let fresh = Arc::new(read(&self.files)?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(config.clone())
    }
}

impl TlsFiles {
    /// The address as a client may write it: with the first of these names that the certificate has,
    /// or else the IP address.
    pub fn shown(&self, names: &[String], address: SocketAddr) -> String {
        let names = names.iter().map(String::as_str).chain(["localhost"]);
        let is_in_certificate = |name: &str| -> Option<()> {
            let certs = certificates(&self.cert).ok()?;
            let cert = ParsedCertificate::try_from(certs.first()?).ok()?;
            let name = ServerName::try_from(name).ok()?;
            rustls::client::verify_server_name(&cert, &name).ok()
        };
        if is_in_certificate(&address.ip().to_string()).is_some() {
            return address.to_string();
        }
        let mut names = names.filter(|name| is_in_certificate(name).is_some());
        names.next().map_or(address.to_string(), |name| {
            format!("{name}:{}", address.port())
        })
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, Error> {
    let certs = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(unreadable("--tls-key", "private key", &files.key))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Internal(error.to_string()))?;
    let config = builder.with_no_client_auth().with_single_cert(certs, key);
    let mut config = config.map_err(|error| {
        let (cert, key) = (files.cert.display(), files.key.display());
        let what = match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{key} is not the private key of the certificate in {cert}")
            }
            error => format!("{cert} and {key} cannot be used: {error}"),
        };
        Invalid::new("--tls-key", what)
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let unreadable = unreadable("--tls-cert", "certificate", path);
    let certs = CertificateDer::pem_file_iter(path).map_err(&unreadable)?;
    let certs: Vec<_> = certs.collect::<Result<_, _>>().map_err(&unreadable)?;
    match certs.is_empty() {
        true => Err(unreadable(pem::Error::NoItemsFound)),
        false => Ok(certs),
    }
}

fn unreadable<'a>(
    option: &'static str,
    noun: &'static str,
    path: &'a Path,
) -> impl Fn(pem::Error) -> Error + 'a {
    move |error| match error {
        pem::Error::Io(source) => Error::file("read", path)(source),
        pem::Error::NoItemsFound => {
            let what = format!("{} holds no {noun} in the PEM format", path.display());
            Invalid::new(option, what).into()
        }
        error => {
            let what = format!(
                "{} is not a {noun} in the PEM format: {error}",
                path.display()
            );
            Invalid::new(option, what).into()
        }
    }
}
