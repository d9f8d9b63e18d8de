//! Secrets that are drawn at random, with a fixed seed, in surroundings that texts have.

use super::*;

/// SplitMix64: the same numbers on every machine and in every release.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    pub(super) fn text(&mut self, alphabet: &str, length: usize) -> String {
        let bytes = alphabet.as_bytes();
        let draw = |_| char::from(bytes[self.below(bytes.len())]);
        (0..length).map(draw).collect()
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// Ten to twenty-four characters of all sorts.
    fn password(&mut self) -> String {
        let length = self.between(10, 24);
        loop {
            let drawn = self.text(SIGNS, length);
            let has = |wanted: fn(&u8) -> bool| drawn.as_bytes().iter().any(wanted);
            if has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
            {
                return drawn;
            }
        }
    }

    /// What a form of a template stands for.
    fn form(&mut self, form: &str) -> Option<String> {
        let card = |draw: &mut Self, begin: &str| {
            let digits = draw.text(DIGITS, 15 - begin.len());
            let number = luhn(format!("{begin}{digits}"));
            let between = draw.pick(&["", " ", "-"]);
            grouped(&number, between)
        };
        Some(match form {
            "password" => self.password(),
            "login" => encoded(&format!("ann:{}", self.password())),
            "id" => encoded(&format!("1{}", self.text(DIGITS, 17))),
            "Visa" => card(self, "4"),
            "Mastercard" => card(self, "53"),
            "German IBAN" => iban(self, "DE", "", 18),
            "British IBAN" => iban(self, "GB", "NWBK", 14),
            "lines" => (0..12).map(|_| self.text(BASE64, 64) + "\n").collect(),
            _ => {
                let (name, length) = form.split_once(':')?;
                let (_, alphabet) = ALPHABETS.iter().find(|(known, _)| *known == name)?;
                let (least, most) = length.split_once('-').unwrap_or((length, length));
                let length = self.between(least.parse().ok()?, most.parse().ok()?);
                self.text(alphabet, length)
            }
        })
    }
}

const BASE64: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
const DIGITS: &str = "0123456789";
const SIGNS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!@#$%^*-_+?.";

/// Alphabets that templates name.
#[rustfmt::skip]
const ALPHABETS: &[(&str, &str)] = &[
    ("alnum", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
    ("word", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
    ("base64", BASE64),
    ("base32", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    ("upper", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
    ("lower", "abcdefghijklmnopqrstuvwxyz0123456789"),
    ("hex", "0123456789abcdef"),
    ("digits", DIGITS),
    ("django", "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)"),
];

/// A statement of this form and the secret in it: what stands between brackets, or the whole.
fn stated(template: &str, draw: &mut Draw) -> (String, String) {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let form = after.split_once('}');
        match form.and_then(|(form, tail)| Some((draw.form(form)?, tail))) {
            Some((value, tail)) => (text, rest) = (text + &value, tail),
            None => (text, rest) = (text + "{", after),
        }
    }
    text.push_str(rest);
    let inner = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    match inner.map(|(secret, _)| secret.to_owned()) {
        Some(secret) => (text.replace(['[', ']'], ""), secret),
        None => (text.clone(), text),
    }
}

fn luhn(mut digits: String) -> String {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| match (at % 2, u32::from(byte - b'0')) {
            (0, digit) if digit > 4 => digit * 2 - 9,
            (0, digit) => digit * 2,
            (_, digit) => digit,
        })
        .sum();
    digits.push_str(&((10 - sum % 10) % 10).to_string());
    digits
}

fn grouped(digits: &str, between: &str) -> String {
    let groups: Vec<&str> = (0..digits.len())
        .step_by(4)
        .map(|at| &digits[at..(at + 4).min(digits.len())])
        .collect();
    groups.join(between)
}

fn iban(draw: &mut Draw, country: &str, bank: &str, digits: usize) -> String {
    let account = format!("{bank}{}", draw.text(DIGITS, digits));
    let code = |c: char| c.to_digit(36).unwrap().to_string();
    let number: String = format!("{account}{country}00").chars().map(code).collect();
    let rest = number
        .bytes()
        .fold(0, |rest, byte| (rest * 10 + u32::from(byte - b'0')) % 97);
    let number = format!("{country}{:02}{account}", 98 - rest);
    grouped(&number, draw.pick(&["", " "]))
}

fn encoded(text: &str) -> String {
    let digits = BASE64_DIGITS.as_bytes();
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_usize, |all, byte| all << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(char::from(digits[bits >> (18 - 6 * place) & 63]));
        }
        out.extend(std::iter::repeat_n('=', 3 - chunk.len()));
    }
    out
}

const BASE64_DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A kind of secret: its name, and the template that one is drawn from. `{hex:32}` stands for so
/// many characters of an alphabet, `{word:120-500}` for a number of them between the two; see
/// [`Draw::form`] for the others.
type Kind = (&'static str, &'static str);

/// Tokens that are known by their beginning.
#[rustfmt::skip]
const TOKENS: &[Kind] = &[
    ("AWS access key", "AKIA{base32:16}"),
    ("AWS temporary key", "ASIA{base32:16}"),
    ("Google API key", "AIza{word:35}"),
    ("Google access token", "ya29.{word:120-500}"),
    ("Google client secret", "GOCSPX-{word:28}"),
    ("DigitalOcean", "dop_v1_{hex:64}"),
    ("GitHub personal", "ghp_{alnum:36}"),
    ("GitHub OAuth", "gho_{alnum:36}"),
    ("GitHub server", "ghs_{alnum:36}"),
    ("GitHub fine-grained", "github_pat_{alnum:22}_{alnum:59}"),
    ("GitLab", "glpat-{word:20}"),
    ("Slack bot", "xoxb-{digits:12}-{digits:13}-{alnum:24}"),
    ("Slack user", "xoxp-{digits:12}-{digits:12}-{digits:12}-{hex:32}"),
    ("Slack app", "xapp-1-{upper:11}-{digits:13}-{hex:64}"),
    ("Slack webhook", "https://hooks.slack.com/services/[T{upper:10}/B{upper:10}/{alnum:24}]"),
    ("Discord webhook", "https://discord.com/api/webhooks/[{digits:18}/{word:68}]"),
    ("Discord bot", "{id}.{word:6}.{word:38}"),
    ("Telegram bot", "7{digits:9}:AA{word:33}"),
    ("Anthropic", "sk-ant-api03-{word:93}AA"),
    ("OpenAI project", "sk-proj-{word:156}"),
    ("OpenAI", "sk-{alnum:48}"),
    ("Groq", "gsk_{alnum:52}"),
    ("Hugging Face", "hf_{alnum:34}"),
    ("Replicate", "r8_{alnum:37}"),
    ("Stripe secret", "sk_live_{alnum:24}"),
    ("Stripe restricted", "rk_live_{alnum:99}"),
    ("Stripe webhook", "whsec_{alnum:32}"),
    ("Shopify", "shpat_{hex:32}"),
    ("Square", "sq0atp-{word:22}"),
    ("npm", "npm_{alnum:36}"),
    ("PyPI", "pypi-AgEIcHlwaS5vcmc{word:150-300}"),
    ("RubyGems", "rubygems_{hex:48}"),
    ("Docker Hub", "dckr_pat_{word:27}"),
    ("SendGrid", "SG.{word:22}.{word:43}"),
    ("Mailgun", "key-{hex:32}"),
    ("Mailchimp", "{hex:32}-us1{digits:1}"),
    ("Twilio", "SK{hex:32}"),
    ("Vault", "hvs.{word:92}"),
    ("Doppler", "dp.pt.{alnum:43}"),
    ("Linear", "lin_api_{alnum:40}"),
    ("Notion", "secret_{alnum:43}"),
    ("Notion, newer", "ntn_{alnum:46}"),
    ("Airtable", "pat{alnum:14}.{hex:64}"),
    ("Databricks", "dapi{hex:32}"),
    ("Grafana", "glsa_{alnum:32}_{hex:8}"),
    ("New Relic", "NRAK-{upper:27}"),
    ("Postman", "PMAK-{hex:24}-{hex:34}"),
    ("Figma", "figd_{word:40}"),
    ("age", "AGE-SECRET-KEY-1{base32:58}"),
    ("AWS session token by its beginning", "IQoJb3JpZ2lu{base64:350-900}"),
    ("web token", "eyJ{word:33}.eyJ{word:80}.{word:43}"),
    ("long web token", "eyJ{word:33}.eyJ{word:5000}.{word:43}"),
    ("card, Visa", "{Visa}"),
    ("card, Mastercard", "{Mastercard}"),
    ("IBAN, Germany", "{German IBAN}"),
    ("IBAN, United Kingdom", "{British IBAN}"),
];

/// Secrets that something around them announces.
#[rustfmt::skip]
const STATED: &[Kind] = &[
    ("AWS secret key", "aws_secret_access_key = [{base64:40}]"),
    ("AWS session token", "AWS_SESSION_TOKEN=[{base64:350-1000}]"),
    ("long bearer", "Authorization: Bearer [{word:600}]"),
    ("basic", "Authorization: Basic [{login}]"),
    ("API key", "X-Api-Key: [{alnum:32}]"),
    ("client secret", "client_secret=[{hex:40}]"),
    ("one-time password key", "otpauth://totp/shop?secret=[{base32:16}]&issuer=shop"),
    ("long one-time password key", "otpauth://totp/shop?secret=[{base32:32}]&issuer=shop"),
    ("Heroku", "HEROKU_API_KEY=[{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}]"),
    ("Django", "SECRET_KEY = '[django-insecure-{django:50}]'"),
    ("Flask", "SECRET_KEY = '[{django:50}]'"),
    ("Azure storage key", "AccountName=shop;AccountKey=[{base64:86}==];EndpointSuffix=core.windows.net"),
    ("Azure signature", "https://shop.blob.core.windows.net/c?sv=2022-11-02&sig=[{alnum:43}%3D]"),
    ("Docker auth", "{\"auths\": {\"registry\": {\"auth\": \"[{login}]\"}}}"),
    ("cookie", "Set-Cookie: session=[{alnum:32}]; Path=/; HttpOnly"),
    ("password", "password: [{password}]"),
    ("DB_PASS", "DB_PASS=[{password}]"),
    ("smtp_pass", "smtp_pass: [{password}]"),
    ("REDIS_AUTH", "REDIS_AUTH=[{password}]"),
    ("quoted password", "\"password\": \"[{password}]\""),
    ("--password", "deploy --user ann --password [{password}] --now"),
    ("mysql -p", "mysql -u root -p[{password}] shop"),
    ("IDENTIFIED BY", "CREATE USER 'ann' IDENTIFIED BY '[{password}]';"),
    ("define", "define('DB_PASSWORD', '[{password}]');"),
    ("element", "<password>[{password}]</password>"),
    ("netrc", "machine example.org login ann password [{password}]"),
    ("wide sign", "password＝[{alnum:14}]"),
    ("English", "The password for the shop is [{password}]"),
    ("German", "Das Passwort ist [{password}]"),
    ("Vietnamese", "mật khẩu là [{password}]"),
    ("Japanese", "パスワードは[{alnum:14}]です"),
    ("Spanish", "la contraseña es [{password}]"),
    ("French", "le mot de passe est [{password}]"),
    ("Portuguese", "a senha é [{password}]"),
    ("Chinese", "密码是[{alnum:14}]"),
    ("Russian", "Пароль: [{password}]"),
    ("Korean", "비밀번호는 [{alnum:14}] 입니다"),
    ("address", "postgres://ann:[{alnum:12}]@db.internal:5432/shop"),
    ("address with signs", "postgres://ann:[{alnum:5}/{alnum:5}#{alnum:4}]@db.internal:5432/shop"),
    ("token in an address", "https://[{lower:40}]@git.example/ann/shop.git"),
    ("name and value", "name: DB_PASSWORD, value: [{password}]"),
    ("RSA key", "-----BEGIN RSA PRIVATE KEY-----\n{lines}-----END RSA PRIVATE KEY-----"),
    ("OpenSSH key", "-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}-----END OPENSSH PRIVATE KEY-----"),
    ("PGP key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{lines}-----END PGP PRIVATE KEY BLOCK-----"),
    ("PuTTY key", "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 12\n{lines}Private-MAC: 9f86d081884c7d65"),
];

/// A way to write a statement down at the place of `{}`, and how its characters are written there.
type Surroundings = (&'static str, &'static str, fn(&str) -> String);

fn json(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

fn percent(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn same(text: &str) -> String {
    text.to_owned()
}

fn nested(text: &str) -> String {
    json(&json(text))
}

#[rustfmt::skip]
const SURROUNDINGS: &[Surroundings] = &[
    ("alone", "{}", same),
    ("on a line of its own", "before\n{}\nafter", same),
    ("in a sentence", "For the deployment: {} (do not share)", same),
    ("after an escaped line break", "first\\n{}\\nlast", json),
    ("after an escaped tab", "column\\t{}\\tmore", json),
    ("in JSON", "{\"log\": \"{}\"}", json),
    ("in JSON in JSON", "{\"a\": \"{\\\"log\\\": \\\"{}\\\"}\"}", nested),
    ("in colour", "\x1b[32m{}\x1b[0m done", same),
    ("in a list of Markdown", "- `{}`\n- next", same),
    ("in a comment", "# old\n# {}\nx = 1", same),
];

/// Surroundings for tokens only: a statement would lose its form there.
#[rustfmt::skip]
const TOKEN_SURROUNDINGS: &[Surroundings] = &[
    ("in a variable", "DEPLOY_WITH={}\nPORT=80", same),
    ("in YAML", "deploy:\n  with: {}\n  port: 80", same),
    ("after a word", "TOKEN_{}", same),
    ("in the query of an address", "https://a.example/?q={}&page=2", percent),
    ("in Japanese", "鍵は{}です。", same),
];

/// Whether a piece of twelve characters is left, or the whole if it is shorter.
fn leaks(masked: &str, secret: &str) -> bool {
    let bytes: Vec<char> = secret.chars().collect();
    let mut windows = bytes.windows(bytes.len().min(12));
    windows.any(|piece| masked.contains(&piece.iter().collect::<String>()))
}

const DRAWN: usize = 200;

#[test]
fn drawn_secrets_are_removed_whole() {
    let mut missed: Vec<String> = Vec::new();
    let mut count = 0;
    let all = TOKENS
        .iter()
        .map(|kind| (kind, true))
        .chain(STATED.iter().map(|kind| (kind, false)));
    for (number, ((kind, template), is_token)) in all.enumerate() {
        let mut random = Draw(20_261_115 + number as u64);
        let more = if is_token { TOKEN_SURROUNDINGS } else { &[] };
        let surroundings: Vec<&Surroundings> = SURROUNDINGS.iter().chain(more).collect();
        for round in 0..DRAWN {
            let (statement, secret) = stated(template, &mut random);
            let (place, around, form) = surroundings[round % surroundings.len()];
            // A word before digits or a country's letters makes another word of them.
            if *place == "after a word" && secret.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let text = around.replacen("{}", &form(&statement), 1);
            count += 1;
            if leaks(&masked(&text), &form(&secret)) {
                missed.push(format!("{kind}, {place}: {text} -> {}", masked(&text)));
            }
        }
    }
    assert!(TOKENS.len() + STATED.len() >= 40);
    let shown: Vec<&String> = missed.iter().take(60).collect();
    assert!(
        missed.len() * 1000 <= count,
        "{} of {count}: {shown:#?}",
        missed.len()
    );
}
