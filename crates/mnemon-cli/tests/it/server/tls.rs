//! TLS: the server, the command line from afar, certificates that change.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

/// An authority, and a certificate of it for `localhost`, in files of these names.
fn certify(sandbox: &Sandbox, ca: &str, cert: &str, key: &str) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let own = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let signed = CertificateParams::new(names).unwrap();
    let signed = signed.signed_by(&own, &issuer).unwrap();
    sandbox.file(ca, issuer.pem());
    sandbox.file(cert, signed.pem());
    sandbox.file(key, own.serialize_pem());
}

const TLS: &[&str] = &["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

#[test]
fn a_server_with_a_certificate_serves_the_command_line() {
    let sandbox = Sandbox::new();
    certify(&sandbox, "ca.pem", "cert.pem", "key.pem");
    let server = Server::start(&sandbox, TLS);
    assert!(
        server
            .said
            .contains("try: curl --cacert cert.pem https://127.0.0.1:"),
        "{}",
        server.said
    );
    // Clients that say nothing, or speak no TLS, hold up nobody.
    let _silent: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(&server.address).unwrap())
        .collect();
    let plain = server.get("/healthz");
    assert_eq!(plain.status, 0, "{plain:?}");
    let run = |sandbox: &Sandbox, args: &[&str]| {
        let url = format!("https://{}", server.address);
        sandbox.run(&[args, &["--server", &url]].concat())
    };
    let (code, said) = run(&sandbox, &["list"]).failed();
    assert_eq!(code, 13, "a certificate of an unknown authority: {said}");
    assert!(
        said.contains("is not accepted") && said.contains("MNEMON_SERVER_CA"),
        "{said}"
    );
    let sandbox = sandbox.with("MNEMON_SERVER_CA", "ca.pem");
    run(&sandbox, &["add", "Ann prefers tea", "--id", "a1"]).ok();
    assert!(run(&sandbox, &["list"]).ok().contains("Ann prefers tea"));
    sandbox.file("ca.pem", "nonsense");
    let (code, said) = run(&sandbox, &["list"]).failed();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("ca.pem holds no certificate"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_certificate_is_read_again_at_sighup_and_a_bad_one_is_not_used() {
    let sandbox = Sandbox::new();
    certify(&sandbox, "old-ca.pem", "cert.pem", "key.pem");
    let server = Server::start(&sandbox, TLS);
    let url = format!("https://{}", server.address);
    let sandbox = sandbox.with("MNEMON_SERVER_CA", "ca.pem");
    let is_served = || sandbox.run(&["list", "--server", &url]).code == 0;
    let hang_up = || {
        let id = server.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-HUP", &id])
                .status()
                .unwrap()
                .success()
        );
    };
    std::fs::copy(sandbox.path("old-ca.pem"), sandbox.path("ca.pem")).unwrap();
    assert!(is_served());
    sandbox.file("cert.pem", "nonsense");
    hang_up();
    assert!(is_served(), "the earlier certificate stays in use");
    certify(&sandbox, "ca.pem", "cert.pem", "key.pem");
    hang_up();
    let began = std::time::Instant::now();
    while !is_served() {
        assert!(
            began.elapsed() < PATIENCE,
            "the new certificate is not used"
        );
    }
}

#[test]
fn wrong_files_of_a_certificate_are_named() {
    let sandbox = Sandbox::new();
    certify(&sandbox, "ca.pem", "cert.pem", "key.pem");
    certify(&sandbox, "ca2.pem", "cert2.pem", "key2.pem");
    sandbox.file("text.pem", "nonsense");
    for (args, code, said) in [
        (&["--tls-cert", "cert.pem"][..], 2, "--tls-key: is missing"),
        (&["--tls-key", "key.pem"], 2, "--tls-cert: is missing"),
        (
            &["--tls-cert", "no.pem", "--tls-key", "key.pem"],
            3,
            "no.pem cannot be read",
        ),
        (
            &["--tls-cert", "text.pem", "--tls-key", "key.pem"],
            2,
            "text.pem holds no certificate",
        ),
        (
            &["--tls-cert", "cert.pem", "--tls-key", "cert.pem"],
            2,
            "cert.pem holds no private key",
        ),
        (
            &["--tls-cert", "cert.pem", "--tls-key", "key2.pem"],
            2,
            "key2.pem is not the private key of",
        ),
    ] {
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let ran = sandbox.run(&[&serve, args].concat());
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(ran.err.contains(said), "{args:?}: {ran:?}");
    }
    // The settings of the file do the same.
    sandbox.config("[server]\ntls_cert = \"cert.pem\"\n");
    let ran = sandbox.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.err.contains("--tls-key: is missing"), "{ran:?}");
}

#[test]
fn a_handshake_has_an_end_and_its_connection_counts() {
    let sandbox = Sandbox::new();
    certify(&sandbox, "ca.pem", "cert.pem", "key.pem");
    let server = Server::start(&sandbox, TLS);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The beginning of a handshake, and no more.
    stream.write_all(&[22, 3, 1]).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
}
