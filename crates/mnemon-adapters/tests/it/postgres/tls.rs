//! Encrypted connections. The server of the tests cannot encrypt, so a proxy in front of it does.

use std::sync::Arc;

use mnemon_core::{Batch, Op};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{database, note};
use crate::kit::{grant, open, wait};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls");

fn acceptor() -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(format!("{FIXTURES}/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(format!("{FIXTURES}/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Accepts encrypted connections for the server, on a thread that lives as long as the tests.
fn encrypting_proxy(server: String) -> u16 {
    let (sender, port) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        mnemon_testkit::block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap().port()).unwrap();
            let acceptor = acceptor();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let (acceptor, server) = (acceptor.clone(), server.clone());
                tokio::spawn(encrypt(client, acceptor, server));
            }
        });
    });
    port.recv().unwrap()
}

async fn encrypt(mut client: TcpStream, acceptor: TlsAcceptor, server: String) {
    // The client asks for encryption with eight bytes.
    let mut request = [0; 8];
    client.read_exact(&mut request).await.unwrap();
    assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47]);
    client.write_all(b"S").await.unwrap();
    // A client that does not trust the certificate goes away.
    if let Ok(mut client) = acceptor.accept(client).await {
        let mut server = TcpStream::connect(server).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

#[test]
fn a_certificate_is_checked_if_that_is_asked_for() {
    let database = database!();
    let url = database.url();
    let (start, host) = url.rsplit_once('@').unwrap();
    let (server, name) = host.split_once('/').unwrap();
    let port = encrypting_proxy(server.to_owned());
    let through = |host: &str, query: &str| format!("{start}@{host}:{port}/{name}?{query}");
    let trusted = format!("sslmode=verify-full&sslrootcert={FIXTURES}/ca.pem");
    for (host, query) in [
        ("127.0.0.1", "sslmode=require"),
        ("127.0.0.1", "sslmode=prefer"),
        ("127.0.0.1", trusted.as_str()),
        ("localhost", trusted.as_str()),
    ] {
        let store = open(&through(host, query));
        wait(store.apply(&grant(), Batch::of(Op::append(note(query))))).unwrap();
    }
    // The system's certificates do not include this authority, and the name is not in the
    // certificate.
    let elsewhere = format!("{trusted}&hostaddr=127.0.0.1");
    for (host, query) in [
        ("127.0.0.1", "sslmode=verify-full"),
        ("db.example", elsewhere.as_str()),
    ] {
        let error = mnemon_adapters::open(&through(host, query)).map(drop);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("certificate"), "{error}");
    }
    let plain = mnemon_adapters::open(&format!("{url}?sslmode=require")).map(drop);
    let error = plain.unwrap_err().to_string();
    assert!(error.contains("TLS"), "{error}");
    let missing = format!("{url}?sslmode=verify-full&sslrootcert=/nosuch.pem");
    let error = mnemon_adapters::open(&missing).map(drop).unwrap_err();
    assert!(error.to_string().contains("/nosuch.pem"), "{error}");
}
