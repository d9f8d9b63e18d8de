//! Sessions of the web page: a browser that signed in with a key holds a cookie in its place.
//!
//! Sessions are kept in memory and end with the process. The key is looked up for every request, so
//! that its revocation ends the session as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use mnemon_operations::config::Secret;
use mnemon_operations::wiring;
use subtle::ConstantTimeEq;

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions at a time; the oldest one ends when there are more.
const MOST: usize = 10_000;
/// Sessions of one key at a time, so that its holder cannot end those of others.
const MOST_OF_A_KEY: usize = 50;

/// The session of a browser. The port of the server is added: browsers send cookies to every port of a
/// host, and two servers of one machine would end each other's sessions.
const SESSION: &str = "mnemon_session";
/// Says that the pages show the demonstration.
const DEMO: &str = "mnemon_demo";

struct Open {
    key: Secret,
    since: Instant,
}

/// The id of a session, which only its browser knows. Without one it is empty.
#[derive(Clone, Default)]
pub(super) struct SessionId(String);

impl SessionId {
    pub(super) fn is_some(&self) -> bool {
        !self.0.is_empty()
    }
}

pub(super) struct Sessions {
    /// Makes the tokens of forms, which another page cannot guess.
    secret: [u8; 32],
    /// By the hash of the id, so that a look at the memory of the process shows no id.
    open: Mutex<HashMap<blake3::Hash, Open>>,
    /// The port that the server listens on.
    port: u16,
}

impl Sessions {
    pub(super) fn new(port: u16) -> Arc<Self> {
        Arc::new(Self {
            secret: wiring::random_bytes(),
            open: Mutex::default(),
            port,
        })
    }

    fn name(&self, cookie: &str) -> String {
        format!("{cookie}_{}", self.port)
    }

    /// Begins a session with a key that was checked.
    pub(super) fn begin(&self, key: &str) -> SessionId {
        let random: [u8; 32] = wiring::random_bytes();
        let id = blake3::Hash::from(random).to_hex().to_string();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| session.since.elapsed() < LIFETIME);
        let is_same = |session: &Open| session.key.reveal() == key;
        let same = open.values().filter(|session| is_same(session)).count();
        if same >= MOST_OF_A_KEY || open.len() >= MOST {
            let ending = open
                .iter()
                .filter(|(_, session)| same < MOST_OF_A_KEY || is_same(session));
            let oldest = ending.min_by_key(|(_, session)| session.since);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                open.remove(&oldest);
            }
        }
        let session = Open {
            key: Secret::new(key),
            since: Instant::now(),
        };
        open.insert(blake3::hash(id.as_bytes()), session);
        SessionId(id)
    }

    pub(super) fn end(&self, id: &SessionId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&blake3::hash(id.0.as_bytes()));
    }

    /// The session of a request, and a header with the key that it stands for.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<(SessionId, HeaderMap)> {
        let id = cookie(headers, &self.name(SESSION))?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get(&blake3::hash(id.as_bytes()))?;
        if session.since.elapsed() >= LIFETIME {
            return None;
        }
        let key = format!("Bearer {}", session.key.reveal());
        let mut shown = HeaderMap::new();
        shown.insert(header::AUTHORIZATION, HeaderValue::from_str(&key).ok()?);
        Some((SessionId(id.to_owned()), shown))
    }

    /// The token that forms of this session must send.
    pub(super) fn token(&self, id: &SessionId) -> String {
        self.seal("form", id)
    }

    pub(super) fn is_token(&self, id: &SessionId, sent: &str) -> bool {
        self.token(id).as_bytes().ct_eq(sent.as_bytes()).into()
    }

    fn seal(&self, purpose: &str, id: &SessionId) -> String {
        let sealed = format!("{purpose}:{}", id.0);
        let hash = blake3::keyed_hash(&self.secret, sealed.as_bytes());
        hash.to_hex().to_string()
    }

    /// Whether the browser was shown the demonstration, in this session.
    pub(super) fn shows_demo(&self, id: &SessionId, headers: &HeaderMap) -> bool {
        let sent = cookie(headers, &self.name(DEMO)).unwrap_or_default();
        let expected = self.seal("demo", id);
        expected.as_bytes().ct_eq(sent.as_bytes()).into()
    }

    /// The cookie that shows the demonstration, or no longer.
    pub(super) fn demo_cookie(&self, id: &SessionId, is_shown: bool, is_secure: bool) -> String {
        let name = self.name(DEMO);
        match is_shown {
            true => set(&name, &self.seal("demo", id), LIFETIME, is_secure),
            false => set(&name, "", Duration::ZERO, is_secure),
        }
    }

    /// The cookie of a session.
    pub(super) fn session_cookie(&self, id: &SessionId, is_secure: bool) -> String {
        set(&self.name(SESSION), &id.0, LIFETIME, is_secure)
    }

    /// The cookie that ends a session in the browser.
    pub(super) fn no_session_cookie(&self, is_secure: bool) -> String {
        set(&self.name(SESSION), "", Duration::ZERO, is_secure)
    }
}

fn set(name: &str, value: &str, lifetime: Duration, is_secure: bool) -> String {
    let secure = match is_secure {
        true => "; Secure",
        false => "",
    };
    let seconds = lifetime.as_secs();
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// The value of a cookie that was sent once. Of two with one name, either may come from another site.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut values = all
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(known, _)| *known == name)
        .map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        let line = format!("other=1; {pair}");
        headers.insert(header::COOKIE, line.parse().unwrap());
        headers
    }

    #[test]
    fn a_session_stands_for_its_key_until_it_ends() {
        let sessions = Sessions::new(7437);
        let id = sessions.begin("mnemon_key");
        let cookie = sessions.session_cookie(&id, true);
        for part in [
            "HttpOnly",
            "SameSite=Strict",
            "Secure",
            "Max-Age=43200",
            "Path=/",
        ] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let (_, shown) = sessions.of(&sent(&cookie)).unwrap();
        assert_eq!(
            shown.get(header::AUTHORIZATION).unwrap(),
            "Bearer mnemon_key"
        );
        assert!(sessions.of(&sent("mnemon_session_7437=0")).is_none());
        // Two cookies of one name: one of them may be another site's.
        let pair = cookie.split(';').next().unwrap();
        let twice = format!("mnemon_session_7437=0; {pair}");
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, twice.parse().unwrap());
        assert!(sessions.of(&headers).is_none());
        let other_port = cookie.replace("_7437=", "_7438=");
        assert!(sessions.of(&sent(&other_port)).is_none());
        sessions.end(&id);
        assert!(sessions.of(&sent(&cookie)).is_none());
        assert!(!sessions.session_cookie(&id, false).contains("Secure"));
    }

    #[test]
    fn a_token_is_of_one_session() {
        let sessions = Sessions::new(7437);
        let (one, other) = (sessions.begin("a"), sessions.begin("b"));
        assert!(sessions.is_token(&one, &sessions.token(&one)));
        assert!(!sessions.is_token(&other, &sessions.token(&one)));
        assert!(!sessions.is_token(&one, ""));
        assert!(!Sessions::new(7437).is_token(&one, &sessions.token(&one)));
        let demo = sessions.demo_cookie(&one, true, false);
        assert!(sessions.shows_demo(&one, &sent(&demo)));
        assert!(!sessions.shows_demo(&other, &sent(&demo)));
    }

    #[test]
    fn there_are_not_more_sessions_than_the_limit() {
        let sessions = Sessions::new(7437);
        let first = sessions.begin("first");
        let is_open = |id: &SessionId| {
            sessions
                .of(&sent(&sessions.session_cookie(id, false)))
                .is_some()
        };
        let other = sessions.begin("other");
        for _ in 0..=MOST_OF_A_KEY {
            sessions.begin("other");
        }
        assert!(is_open(&first) && !is_open(&other));
        assert_eq!(sessions.open.lock().unwrap().len(), MOST_OF_A_KEY + 1);
        for number in 0..MOST {
            sessions.begin(&format!("key {number}"));
        }
        assert!(!is_open(&first));
        assert_eq!(sessions.open.lock().unwrap().len(), MOST);
    }
}
