//! JSON Web Tokens: keys of an address, and settings that change while the server runs.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

/// Claims until 2100 for the tenant `acme`, and headers and signatures by one key each. Together they
/// would look like secrets.
const CLAIMS: &str = "eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlIiwgImF1ZCI6ICJtbmVtb24iLCAiZXhwIjogNDEwMjQ0NDgwMCwgInRlbmFudCI6ICJhY21lIiwgInN1YiI6ICJhbm4iLCAicmlnaHRzIjogInJlYWQifQ";
const SIGNED: [(&str, &str); 2] = [
    (
        "eyJhbGciOiAiSFMyNTYiLCAia2lkIjogIm9uZSJ9",
        "0eC-Uqv6WKoXvMuVVevi-Cvjcp_pZPQow58L041W_OY",
    ),
    (
        "eyJhbGciOiAiSFMyNTYiLCAia2lkIjogInR3byJ9",
        "lhGhjtNx-tcH4Mj-qiYKYPw6Gj4OdQvXt26aNk5lXWo",
    ),
];
const KEYS: [&str; 2] = [
    r#"{"keys":[{"kty":"oct","kid":"one","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}"#,
    r#"{"keys":[{"kty":"oct","kid":"two","k":"ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA"}]}"#,
];

fn settings(jwks: &str) -> String {
    format!(
        "[server.jwt]\nissuer = \"https://id.example\"\naudience = \"mnemon\"\njwks = \"{jwks}\"\n"
    )
}

/// An address with the first key, and how often it was asked.
fn address() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jwks", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 2048]);
            count.fetch_add(1, Ordering::SeqCst);
            let (body, length) = (KEYS[0], KEYS[0].len());
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length";
            let _ = write!(stream, "{head}: {length}\r\n\r\n{body}");
        }
    });
    (url, asked)
}

#[cfg(unix)]
#[test]
fn keys_come_from_an_address_and_settings_change_at_sighup() {
    let sandbox = Sandbox::new();
    let (url, asked) = address();
    sandbox.config(settings(&url));
    let server = Server::start(&sandbox, &[]);
    let [one, two] = SIGNED.map(|(header, signature)| format!("{header}.{CLAIMS}.{signature}"));
    let status = |token: Option<&str>| {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer
            .iter()
            .map(|it| ("Authorization", it.as_str()))
            .collect();
        server.ask("GET", "/v1/records", &headers, "").status
    };
    assert_eq!(status(Some(&one)), 200);
    // Tokens of unknown keys do not make the server ask again and again.
    for _ in 0..20 {
        assert_eq!(status(Some(&two)), 401);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let reload = |text: &str| {
        sandbox.config(text);
        let id = server.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-HUP", &id])
                .status()
                .unwrap()
                .success()
        );
    };
    let until = |token: &str, wanted: u16| {
        let began = std::time::Instant::now();
        while status(Some(token)) != wanted {
            assert!(began.elapsed() < PATIENCE, "not {wanted}");
        }
    };
    sandbox.file(".config/mnemon/two.json", KEYS[1]);
    reload(&settings("two.json"));
    until(&two, 200);
    assert_eq!(status(Some(&one)), 401);
    reload("");
    until(&two, 401);
    assert_eq!(status(None), 401, "a server that was closed stays closed");
}

#[test]
fn an_address_without_encryption_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.config(settings("http://id.example/jwks"));
    let (code, said) = sandbox.run(&["serve", "--listen", "127.0.0.1:0"]).failed();
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("server.jwt.jwks") && said.contains("use https"),
        "{said}"
    );
}
