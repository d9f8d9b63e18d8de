//! Lines in which nothing is secret: prose, programs, logs and configuration.

use super::drawn::Draw;
use super::*;

/// Lines that look like secrets and are none, written by hand.
const TRICKY: &str = include_str!("ordinary.txt");

const WORDS: &str = "\
    account address admin agent answer backup branch bucket budget build button cache change \
    channel client cluster column commit config cursor customer database deploy device document \
    domain error event export feature field filter folder format gateway group handler header \
    history image import index invoice issue item journal kernel label language layer ledger \
    letter library limit listener logger machine manager margin member memory message method \
    metric migration module network node note number object order package packet page panel \
    parser partner payment planner policy process product profile project prompt proxy queue \
    quota reader record region release report request resource response result router sample \
    schema scope search section server service session setting shard signal socket source status \
    storage stream summary switch table target task tenant ticket timer topic trace traffic \
    update upload user value vector version viewer volume warning widget window worker writer zone";

/// Templates: `{w}` is a word, `{W}` one with a capital, `{n}` a number, `{h}` a digest, `{g}` a
/// commit, `{u}` a UUID, `{d}` a date, `{v}` a version, `{i}` an identifier, `{b}` Base64.
const TEMPLATES: &[&str] = &[
    // Prose.
    "The {w} of the {w} is read before the {w}, and its password must have {n} characters.",
    "Ask the {w} for the token; the key is kept in the vault of the {w}.",
    "Passwords are hashed with argon2id, and the {w} token expires after {n} minutes.",
    "A secret is never written into the {w}: use the {w} instead, see issue {n}.",
    "The password is required when the {w} is {w}.",
    "Their API key is stored in the {w} manager under {w}/{w}.",
    "Das Passwort ist im {W} hinterlegt, und der Token gilt {n} Tage.",
    "Le mot de passe est obligatoire pour le {w}; la clé est dans le {w}.",
    "La contraseña es obligatoria y tiene {n} caracteres como mínimo.",
    "パスワードは{n}文字以上です。{w}の設定を確認してください。",
    "Mật khẩu là bắt buộc và có ít nhất {n} ký tự.",
    "Пароль должен содержать {n} символов, а ключ хранится в {w}.",
    "On {d} we moved the {w} to {W} {v}; commit {g} has the details.",
    "The {w} key of the {w} table is a UUID such as {u}.",
    // Programs.
    "let token = self.{w}.{w}_token(&{w});",
    "let password: String = prompt_{w}()?;",
    "fn {i}(key: &str, token: Option<&Token>) -> Result<{W}, Error> {",
    "def {i}(self, password: str, secret: bytes = b\"\") -> {W}:",
    "password = getpass.getpass(\"{W}: \")",
    "api_key = os.environ[\"{W}_API_KEY\"]",
    "const token = process.env.{W}_TOKEN;",
    "if (password.length < {n}) throw new {W}Error(\"{w}\");",
    "map.insert({i}.key, {i}.value{n});",
    "for (key, value) in {w}.iter().filter(|(key, _)| key != \"{w}\") {",
    "self.password_field = {W}Field(max_length={n}, widget=PasswordInput)",
    "expect({i}.token).toEqual({w}.nextPageToken);",
    "return jwt.verify(token, {w}.publicKey, { algorithms: [\"RS256\"] });",
    "assert_eq!({i}.digest(), \"{h}\");",
    "use crate::{w}::{{W}, {W}Key, {W}Token};",
    "var e=t.key,n=r.token,o=i({n}),a=s.password||\"\",c=u[{n}];",
    "<input type=\"password\" name=\"password\" id=\"{w}-password\" autocomplete=\"new-password\">",
    "SELECT {w}_id, password_hash FROM {w}s WHERE token IS NOT NULL LIMIT {n};",
    "git checkout {g} && cargo test -p {w}-{w} -- --test-threads {n}",
    "docker run -p {n}:80 -u 1000:1000 {w}/{w}:{v}",
    "curl -H \"Authorization: Bearer $TOKEN\" https://{w}.example.org/{w}?page={n}",
    "mysql -u {w} -p {w}_{w}",
    // Logs.
    "{d}T10:22:{n}Z INFO {w}: request {u} done in {n} ms status=200",
    "{d} 08:00:01.123 [{w}-{n}] DEBUG {w}.{w} - key={u} size={n}",
    "level=warn msg=\"token expired\" user={w} session={u} trace={h}",
    "{\"ts\":\"{d}T10:00:00Z\",\"level\":\"info\",\"msg\":\"{w} {w}\\n\",\"span\":\"{g}\",\"n\":{n}}",
    "10.0.{n}.{n} - - [15/Nov/2026] \"GET /{w}/{n}?key={w}&sort=name HTTP/1.1\" 200 {n}",
    "thread '{w}' panicked at src/{w}/{w}.rs:{n}:{n}: {w} is missing",
    "tokens: {n} prompt, {n} completion; cache_key {h}",
    // Configuration and locks.
    "{i} = \"{w}\"",
    "{w}_key = \"{w}/{w}/{w}.json\"",
    "key: {w}-{w}-${{ hashFiles('**/Cargo.lock') }}",
    "key: {w}-cargo-{h}",
    "checksum = \"{h}\"",
    "  resolved \"https://registry.example.org/{w}/-/{w}-{v}.tgz#{g}\"",
    "  integrity sha512-{b}==",
    "{w}: sha256:{h}",
    "image: registry.example.org/{w}/{w}@sha256:{h}",
    "password: ${DB_PASSWORD}",
    "secretName: {w}-{w}-tls",
    "existingSecret: {w}-credentials",
    "passwordSecretRef: { name: {w}-{w}, key: password }",
    "{W}_TOKEN=<your-token>",
    "{W}_PASSWORD=changeme",
    "api_key: xxxxxxxxxxxxxxxxxxxxxxxx",
    "max_tokens = {n}",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b} {w}@{w}",
    "public_key = \"{b}\"",
    "background: url(data:image/png;base64,{b}{b})",
    "uuid = \"{u}\"",
    "key = \"{u}\"",
    "next_page_token: {b}",
    "ETag: \"{h}\"",
    "https://{w}.example.org:8443/{w}/{w}@{v}?ref={g}",
    "ssh://git@{w}.example.org/{w}/{w}.git",
];

const BASE64: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
const HEX: &str = "0123456789abcdef";

fn word(draw: &mut Draw) -> &'static str {
    let words: Vec<&str> = WORDS.split(' ').collect();
    draw.pick(&words)
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

fn filled(template: &str, draw: &mut Draw) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let value = match after.get(..3) {
            Some("{w}") => word(draw).to_owned(),
            Some("{W}") => capital(word(draw)),
            Some("{n}") => draw.below(90_000).to_string(),
            Some("{h}") => draw.text(HEX, 64),
            Some("{g}") => draw.text(HEX, 40),
            Some("{u}") => [8, 4, 4, 4, 12]
                .map(|length| draw.text(HEX, length))
                .join("-"),
            Some("{d}") => format!("2026-{:02}-{:02}", draw.below(12) + 1, draw.below(28) + 1),
            Some("{v}") => format!("{}.{}.{}", draw.below(9), draw.below(40), draw.below(20)),
            Some("{b}") => draw.text(BASE64, 64),
            Some("{i}") => match draw.below(3) {
                0 => format!("{}_{}_{}", word(draw), word(draw), draw.below(9)),
                1 => format!("{}{}", word(draw), capital(word(draw))),
                _ => format!("{}_key", word(draw)),
            },
            _ => {
                out.push('{');
                rest = &after[1..];
                continue;
            }
        };
        out.push_str(&value);
        rest = &after[3..];
    }
    out + rest
}

#[test]
fn ordinary_lines_are_left_alone() {
    let mut draw = Draw(8);
    let drawn = (0..8000).map(|number| filled(TEMPLATES[number % TEMPLATES.len()], &mut draw));
    let lines: Vec<String> = TRICKY.lines().map(str::to_owned).chain(drawn).collect();
    let wrong: Vec<String> = lines
        .iter()
        .filter(|line| masked(line) != **line)
        .map(|line| format!("{line} -> {}", masked(line)))
        .collect();
    assert!(
        wrong.len() * 500 <= lines.len(),
        "{} of {}: {wrong:#?}",
        wrong.len(),
        lines.len()
    );
}

#[test]
fn tricky_lines_are_left_alone() {
    for line in TRICKY.lines() {
        assert_eq!(masked(line), line);
    }
}
