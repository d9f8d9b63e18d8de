use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use ring::{hmac, rsa};
use serde_json::json;

use super::*;

/// 2023-11-14T22:13:20Z
const NOW_S: i64 = 1_700_000_000;
/// A key for these tests only.
const RSA: &[u8] = include_bytes!("rsa_2048_test.pk8");
const SECRET: &[u8] = b"a secret of at least 32 bytes, for tests";

/// Holds a fixed document.
struct Fixed(String);

impl JwksSource for Fixed {
    fn read(&self) -> Result<Jwks, JwksError> {
        Jwks::parse(&self.0)
    }
}

/// A key of each sort.
struct Pairs {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn pairs() -> Pairs {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let p256 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    Pairs {
        rsa: RsaKeyPair::from_pkcs8(RSA).unwrap(),
        p256: EcdsaKeyPair::from_pkcs8(algorithm, p256.as_ref(), &random).unwrap(),
        ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
    }
}

impl Pairs {
    fn jwks(&self) -> Value {
        let rsa = rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let point = self.p256.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "kid": "r", "use": "sig", "n": encode(rsa.n), "e": encode(rsa.e)},
            {"kty": "EC", "kid": "p", "crv": "P-256", "alg": "ES256",
             "x": encode(&point[1..33]), "y": encode(&point[33..])},
            {"kty": "OKP", "kid": "e", "crv": "Ed25519",
             "x": encode(self.ed25519.public_key())},
            {"kty": "oct", "kid": "h", "k": encode(SECRET)},
            {"kty": "EC", "kid": "other", "crv": "P-384", "x": "AA", "y": "AA"},
        ]})
    }

    fn tokens(&self) -> Tokens {
        let rules = TokenRules {
            issuer: "https://id.example".to_owned(),
            audience: "mnemon".to_owned(),
            leeway_s: 60,
        };
        Tokens::open(rules, Box::new(Fixed(self.jwks().to_string()))).unwrap()
    }

    /// A token that the named key signs, whatever its header says.
    fn sign(&self, key: &str, header: &Value, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        );
        let random = SystemRandom::new();
        let signature = match key {
            "r" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let signed = signed.as_bytes();
                let done = self
                    .rsa
                    .sign(&RSA_PKCS1_SHA256, &random, signed, &mut signature);
                done.unwrap();
                signature
            }
            "p" => {
                let signature = self.p256.sign(&random, signed.as_bytes()).unwrap();
                signature.as_ref().to_vec()
            }
            "e" => self.ed25519.sign(signed.as_bytes()).as_ref().to_vec(),
            "h" => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{signed}.{}", encode(signature))
    }
}

fn claims() -> Value {
    json!({
        "iss": "https://id.example", "aud": "mnemon", "sub": "ann", "tenant": "acme",
        "exp": NOW_S + 300, "nbf": NOW_S - 10,
    })
}

fn now() -> Time {
    Time::from_millis(NOW_S * 1000).unwrap()
}

const KEYS: [(&str, &str); 4] = [
    ("r", "RS256"),
    ("p", "ES256"),
    ("e", "EdDSA"),
    ("h", "HS256"),
];

#[test]
fn tokens_of_each_algorithm_are_accepted() {
    let pairs = pairs();
    let tokens = pairs.tokens();
    for (key, alg) in KEYS {
        for header in [
            json!({"alg": alg, "kid": key, "typ": "JWT"}),
            json!({"alg": alg}),
        ] {
            let token = pairs.sign(key, &header, &claims());
            let verified = tokens.verify(now(), &token).unwrap();
            assert_eq!(verified["sub"], "ann", "{alg}");
        }
    }
}

#[test]
fn a_token_does_not_choose_its_algorithm() {
    let pairs = pairs();
    let tokens = pairs.tokens();
    let refused = |token: &str| tokens.verify(now(), token).unwrap_err();
    for alg in ["none", "None", "", "HS512", "RS512", "hs256"] {
        for header in [json!({"alg": alg}), json!({"alg": alg, "kid": "r"})] {
            let token = pairs.sign("", &header, &claims());
            assert_eq!(refused(&token), TokenRefused::Algorithm, "{alg}");
        }
    }
    // The public RSA key as an HMAC secret, and each key under the name of another.
    let n = rsa::PublicKeyComponents::<Vec<u8>>::from(pairs.rsa.public()).n;
    let header = encode(json!({"alg": "HS256", "kid": "r"}).to_string());
    let signed = format!("{header}.{}", encode(claims().to_string()));
    let forged = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &n), signed.as_bytes());
    let forged = format!("{signed}.{}", encode(forged));
    assert_eq!(refused(&forged), TokenRefused::Algorithm);
    for (key, alg) in KEYS {
        for (other, other_alg) in KEYS.iter().filter(|(other, _)| *other != key) {
            let token = pairs.sign(key, &json!({"alg": alg, "kid": other}), &claims());
            assert_eq!(refused(&token), TokenRefused::Algorithm);
            let token = pairs.sign(key, &json!({"alg": other_alg, "kid": other}), &claims());
            assert_eq!(refused(&token), TokenRefused::Signature);
        }
    }
    let token = pairs.sign("r", &json!({"alg": "RS256", "kid": "x"}), &claims());
    assert_eq!(refused(&token), TokenRefused::UnknownKey);
    // Another pair of the same sort.
    let token = self::pairs().sign("e", &json!({"alg": "EdDSA"}), &claims());
    assert_eq!(refused(&token), TokenRefused::Signature);
}

#[test]
fn claims_are_checked() {
    let pairs = pairs();
    let tokens = pairs.tokens();
    for (claim, value, expected) in [
        (
            "iss",
            json!("https://other.example"),
            Err(TokenRefused::Issuer),
        ),
        (
            "iss",
            json!(["https://id.example"]),
            Err(TokenRefused::Issuer),
        ),
        ("iss", Value::Null, Err(TokenRefused::Issuer)),
        ("aud", json!("other"), Err(TokenRefused::Audience)),
        ("aud", json!(["other"]), Err(TokenRefused::Audience)),
        ("aud", Value::Null, Err(TokenRefused::Audience)),
        ("aud", json!(["other", "mnemon"]), Ok(())),
        ("exp", json!(NOW_S - 60), Err(TokenRefused::Expired)),
        ("exp", json!(NOW_S - 59), Ok(())),
        ("exp", Value::Null, Err(TokenRefused::Expired)),
        ("exp", json!("tomorrow"), Err(TokenRefused::Expired)),
        ("nbf", json!(NOW_S + 61), Err(TokenRefused::NotYet)),
        ("nbf", json!(NOW_S + 60), Ok(())),
        ("nbf", json!("now"), Err(TokenRefused::NotYet)),
        ("iat", json!(NOW_S + 3600), Err(TokenRefused::NotYet)),
    ] {
        let mut all = claims();
        all[claim] = value.clone();
        if value.is_null() {
            all.as_object_mut().unwrap().remove(claim);
        }
        let token = pairs.sign("e", &json!({"alg": "EdDSA"}), &all);
        let verified = tokens.verify(now(), &token).map(|_| ());
        assert_eq!(verified, expected, "{claim} {value}");
    }
}

#[test]
fn altered_and_malformed_tokens_are_refused() {
    let pairs = pairs();
    let tokens = pairs.tokens();
    let good = pairs.sign("h", &json!({"alg": "HS256"}), &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let mut richer = claims();
    richer["rights"] = json!("admin");
    let altered = [parts[0], &encode(richer.to_string()), parts[2]].join(".");
    assert_eq!(
        tokens.verify(now(), &altered).unwrap_err(),
        TokenRefused::Signature
    );
    let critical = pairs.sign("h", &json!({"alg": "HS256", "crit": ["b64"]}), &claims());
    let no_object = pairs.sign("h", &json!({"alg": "HS256"}), &json!([1]));
    let long = "a".repeat(limits::CREDENTIAL_BYTES + 1);
    let padded = format!("{good}=");
    for bad in [
        "", ".", "..", "a.b.c", "a.b", &critical, &no_object, &long, &padded, "é.é.é",
    ] {
        assert_eq!(
            tokens.verify(now(), bad).unwrap_err(),
            TokenRefused::Malformed,
            "{bad}"
        );
    }
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    assert_eq!(
        tokens.verify(now(), &unsigned).unwrap_err(),
        TokenRefused::Signature
    );
}

#[test]
fn key_documents_are_checked() {
    for (document, expected) in [
        ("", "not a JWKS document"),
        ("[]", "not a JWKS document"),
        (r#"{"keys": []}"#, "no key for"),
        (
            r#"{"keys": [{"kty": "oct", "k": "c2hvcnQ"}]}"#,
            "key 1 is too short",
        ),
        (
            r#"{"keys": [{"kty": "RSA", "n": "AQAB"}]}"#,
            "key 1 lacks `e`",
        ),
        (
            r#"{"keys": [{"kty": "RSA", "n": "?", "e": "AQAB"}]}"#,
            "not base64url",
        ),
        (
            r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}"#,
            "32 bytes",
        ),
        (
            r#"{"keys": [{"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"}]}"#,
            "no key for",
        ),
        (
            r#"{"keys": [{"kty": "RSA", "alg": "RS512", "n": "AQAB", "e": "AQAB"}]}"#,
            "no key for",
        ),
    ] {
        let error = Jwks::parse(document).unwrap_err().to_string();
        assert!(error.contains(expected), "{document}: {error}");
    }
}

#[test]
fn keys_are_read_from_a_file_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jwks.json");
    let (old, new) = (pairs(), pairs());
    std::fs::write(&path, old.jwks().to_string()).unwrap();
    let rules = old.tokens().rules;
    let tokens = Tokens::open(rules.clone(), Box::new(JwksFile(path.clone()))).unwrap();
    let of = |pairs: &Pairs| pairs.sign("e", &json!({"alg": "EdDSA"}), &claims());
    assert!(tokens.verify(now(), &of(&old)).is_ok() && tokens.verify(now(), &of(&new)).is_err());
    std::fs::write(&path, new.jwks().to_string()).unwrap();
    tokens.reload().unwrap();
    assert!(tokens.verify(now(), &of(&old)).is_err() && tokens.verify(now(), &of(&new)).is_ok());
    // A damaged file changes nothing.
    std::fs::write(&path, "{").unwrap();
    let error = tokens.reload().unwrap_err().to_string();
    assert!(error.contains("jwks.json"), "{error}");
    assert!(tokens.verify(now(), &of(&new)).is_ok());
    let missing = JwksFile(folder.path().join("missing"));
    assert!(Tokens::open(rules, Box::new(missing)).is_err());
}

/// Serves what the test sets as JWKS; counts how often it was asked.
struct Address {
    url: String,
    answer: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

fn address(answer: String) -> Address {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jwks", listener.local_addr().unwrap());
    let (answer, asked) = (Arc::new(Mutex::new(answer)), Arc::new(AtomicUsize::new(0)));
    let (said, count) = (answer.clone(), asked.clone());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 2048];
            let _ = std::io::Read::read(&mut stream, &mut head);
            count.fetch_add(1, Ordering::SeqCst);
            let said = said.lock().unwrap().clone();
            let length = said.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{said}"
            );
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        }
    });
    Address { url, answer, asked }
}

#[tokio::test]
async fn keys_of_an_address_are_asked_for_again_but_not_too_often() {
    let (old, new) = (pairs(), pairs());
    let address = address(old.jwks().to_string());
    let tokens = Tokens::at_url(old.tokens().rules, &address.url).unwrap();
    let of = |pairs: &Pairs| pairs.sign("e", &json!({"alg": "EdDSA"}), &claims());
    assert_eq!(
        tokens.verify(now(), &of(&old)),
        Err(TokenRefused::UnknownKey)
    );
    let minute = 60_000;
    tokens.refresh(now(), minute).await.unwrap();
    assert!(tokens.verify(now(), &of(&old)).is_ok());
    address
        .answer
        .lock()
        .unwrap()
        .clone_from(&new.jwks().to_string());
    for _ in 0..10 {
        tokens
            .refresh(now().plus_millis(59_999), minute)
            .await
            .unwrap();
    }
    assert_eq!(address.asked.load(Ordering::SeqCst), 1);
    assert!(tokens.verify(now(), &of(&new)).is_err());
    tokens
        .refresh(now().plus_millis(60_000), minute)
        .await
        .unwrap();
    assert!(tokens.verify(now(), &of(&old)).is_err() && tokens.verify(now(), &of(&new)).is_ok());
    // The last good keys stay in use.
    let bad = ["{".to_owned(), " ".repeat(2 * 1024 * 1024)];
    for (at, bad) in bad.into_iter().enumerate() {
        *address.answer.lock().unwrap() = bad;
        let later = now().plus_millis(minute * (at as i64 + 2));
        assert!(tokens.refresh(later, minute).await.is_err());
        assert!(tokens.verify(now(), &of(&new)).is_ok());
    }
}

#[test]
fn keys_come_over_https_or_from_this_machine() {
    let rules = pairs().tokens().rules;
    for (url, is_accepted) in [
        ("https://id.example/jwks", true),
        ("http://127.0.0.1:9/jwks", true),
        ("http://[::1]:9/jwks", true),
        ("http://localhost/jwks", true),
        ("http://id.example/jwks", false),
        ("http://10.0.0.1/jwks", false),
        ("ftp://id.example/jwks", false),
        ("nonsense", false),
    ] {
        let tokens = Tokens::at_url(rules.clone(), url);
        assert_eq!(tokens.is_ok(), is_accepted, "{url}");
    }
}
