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

    fn uuid(&mut self) -> String {
        let parts = [8, 4, 4, 4, 12].map(|length| self.text(HEX, length));
        parts.join("-")
    }
}

const ALNUM: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const WORD: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
const BASE64: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const DIGITS: &str = "0123456789";
const SIGNS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!@#$%^*-_+?.";
const DJANGO: &str = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)";

/// A statement and the secret in it.
type Stated = (String, String);

/// A kind of secret: its name, and how one is drawn.
type Kind = (&'static str, fn(&mut Draw) -> Stated);

/// The secret alone.
fn bare(secret: String) -> Stated {
    (secret.clone(), secret)
}

/// The secret within a statement that has `{}` in its place.
fn within(statement: &str, secret: String) -> Stated {
    (statement.replacen("{}", &secret, 1), secret)
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

fn grouped(digits: &str, size: usize, between: &str) -> String {
    let groups: Vec<&str> = (0..digits.len())
        .step_by(size)
        .map(|at| &digits[at..(at + size).min(digits.len())])
        .collect();
    groups.join(between)
}

fn card(draw: &mut Draw, begin: &str, length: usize) -> Stated {
    let rest = draw.text(DIGITS, length - 1 - begin.len());
    let number = luhn(format!("{begin}{rest}"));
    bare(match draw.below(3) {
        0 => number,
        1 => grouped(&number, 4, " "),
        _ => grouped(&number, 4, "-"),
    })
}

fn iban(draw: &mut Draw, country: &str, bank: &str, digits: usize) -> Stated {
    let account = format!("{bank}{}", draw.text(DIGITS, digits));
    let code = |c: char| c.to_digit(36).unwrap().to_string();
    let number: String = format!("{account}{country}00").chars().map(code).collect();
    let rest = number
        .bytes()
        .fold(0, |rest, byte| (rest * 10 + u32::from(byte - b'0')) % 97);
    let number = format!("{country}{:02}{account}", 98 - rest);
    bare(match draw.below(2) {
        0 => number,
        _ => grouped(&number, 4, " "),
    })
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

fn web_token(draw: &mut Draw, payload: usize) -> Stated {
    let head = draw.text(WORD, 33);
    let (body, end) = (draw.text(WORD, payload), draw.text(WORD, 43));
    bare(format!("ey{}{head}.eyJ{body}.{end}", "J"))
}

fn lines(draw: &mut Draw, begin: &str, end: &str) -> Stated {
    let body: Vec<String> = (0..12).map(|_| draw.text(BASE64, 64)).collect();
    bare(format!("{begin}\n{}\n{end}", body.join("\n")))
}

/// Tokens that are known by their beginning. The beginnings are in two pieces so that no scanner
/// takes this file for a leak.
const TOKENS: &[Kind] = &[
    ("AWS access key", |d| {
        bare(format!("AK{}{}", "IA", d.text(BASE32, 16)))
    }),
    ("AWS temporary key", |d| {
        bare(format!("AS{}{}", "IA", d.text(BASE32, 16)))
    }),
    ("Google API key", |d| {
        bare(format!("AI{}{}", "za", d.text(WORD, 35)))
    }),
    ("Google access token", |d| {
        let length = d.between(120, 500);
        bare(format!("ya{}.{}", "29", d.text(WORD, length)))
    }),
    ("Google client secret", |d| {
        bare(format!("GOC{}-{}", "SPX", d.text(WORD, 28)))
    }),
    ("DigitalOcean", |d| {
        bare(format!("dop{}{}", "_v1_", d.text(HEX, 64)))
    }),
    ("GitHub personal", |d| {
        bare(format!("gh{}{}", "p_", d.text(ALNUM, 36)))
    }),
    ("GitHub OAuth", |d| {
        bare(format!("gh{}{}", "o_", d.text(ALNUM, 36)))
    }),
    ("GitHub server", |d| {
        bare(format!("gh{}{}", "s_", d.text(ALNUM, 36)))
    }),
    ("GitHub fine-grained", |d| {
        bare(format!(
            "github{}{}_{}",
            "_pat_",
            d.text(ALNUM, 22),
            d.text(ALNUM, 59)
        ))
    }),
    ("GitLab", |d| {
        bare(format!("gl{}{}", "pat-", d.text(WORD, 20)))
    }),
    ("Slack bot", |d| {
        let (team, user) = (d.text(DIGITS, 12), d.text(DIGITS, 13));
        bare(format!("xo{}-{team}-{user}-{}", "xb", d.text(ALNUM, 24)))
    }),
    ("Slack user", |d| {
        let ids = [12, 12, 12].map(|length| d.text(DIGITS, length)).join("-");
        bare(format!("xo{}-{ids}-{}", "xp", d.text(HEX, 32)))
    }),
    ("Slack app", |d| {
        bare(format!(
            "xa{}-1-{}-{}-{}",
            "pp",
            d.text(UPPER, 11),
            d.text(DIGITS, 13),
            d.text(HEX, 64)
        ))
    }),
    ("Slack webhook", |d| {
        let ids = format!("T{}/B{}", d.text(UPPER, 10), d.text(UPPER, 10));
        within(
            "https://hooks.slack.com/services/{}",
            format!("{ids}/{}", d.text(ALNUM, 24)),
        )
    }),
    ("Discord webhook", |d| {
        let id = d.text(DIGITS, 18);
        within(
            "https://discord.com/api/webhooks/{}",
            format!("{id}/{}", d.text(WORD, 68)),
        )
    }),
    ("Discord bot", |d| {
        let id = format!("1{}", d.text(DIGITS, 17));
        bare(format!(
            "{}.{}.{}",
            encoded(&id),
            d.text(WORD, 6),
            d.text(WORD, 38)
        ))
    }),
    ("Telegram bot", |d| {
        let id = format!("7{}", d.text(DIGITS, 9));
        bare(format!("{id}:AA{}", d.text(WORD, 33)))
    }),
    ("Anthropic", |d| {
        bare(format!("sk-{}-{}AA", "ant-api03", d.text(WORD, 93)))
    }),
    ("OpenAI project", |d| {
        bare(format!("sk-{}-{}", "proj", d.text(WORD, 156)))
    }),
    ("OpenAI", |d| {
        bare(format!("s{}-{}", "k", d.text(ALNUM, 48)))
    }),
    ("Groq", |d| bare(format!("gs{}_{}", "k", d.text(ALNUM, 52)))),
    ("Hugging Face", |d| {
        bare(format!("h{}_{}", "f", d.text(ALNUM, 34)))
    }),
    ("Replicate", |d| {
        bare(format!("r{}_{}", "8", d.text(ALNUM, 37)))
    }),
    ("Stripe secret", |d| {
        bare(format!("sk_{}_{}", "live", d.text(ALNUM, 24)))
    }),
    ("Stripe restricted", |d| {
        bare(format!("rk_{}_{}", "live", d.text(ALNUM, 99)))
    }),
    ("Stripe webhook", |d| {
        bare(format!("whs{}_{}", "ec", d.text(ALNUM, 32)))
    }),
    ("Shopify", |d| {
        bare(format!("shp{}_{}", "at", d.text(HEX, 32)))
    }),
    ("Square", |d| {
        bare(format!("sq0{}-{}", "atp", d.text(WORD, 22)))
    }),
    ("npm", |d| bare(format!("np{}_{}", "m", d.text(ALNUM, 36)))),
    ("PyPI", |d| {
        let length = d.between(150, 300);
        bare(format!(
            "py{}-AgEIcHlwaS5vcmc{}",
            "pi",
            d.text(WORD, length)
        ))
    }),
    ("RubyGems", |d| {
        bare(format!("ruby{}_{}", "gems", d.text(HEX, 48)))
    }),
    ("Docker Hub", |d| {
        bare(format!("dckr{}_{}", "_pat", d.text(WORD, 27)))
    }),
    ("SendGrid", |d| {
        bare(format!(
            "S{}.{}.{}",
            "G",
            d.text(WORD, 22),
            d.text(WORD, 43)
        ))
    }),
    ("Mailgun", |d| {
        bare(format!("ke{}-{}", "y", d.text(HEX, 32)))
    }),
    ("Mailchimp", |d| {
        let centre = d.between(1, 21);
        bare(format!("{}-us{centre}", d.text(HEX, 32)))
    }),
    ("Twilio", |d| bare(format!("S{}{}", "K", d.text(HEX, 32)))),
    ("Vault", |d| bare(format!("hv{}.{}", "s", d.text(WORD, 92)))),
    ("Doppler", |d| {
        bare(format!("dp{}.{}", ".pt", d.text(ALNUM, 43)))
    }),
    ("Linear", |d| {
        bare(format!("lin{}_{}", "_api", d.text(ALNUM, 40)))
    }),
    ("Notion", |d| {
        bare(format!("sec{}_{}", "ret", d.text(ALNUM, 43)))
    }),
    ("Notion, newer", |d| {
        bare(format!("nt{}_{}", "n", d.text(ALNUM, 46)))
    }),
    ("Airtable", |d| {
        bare(format!(
            "pa{}{}.{}",
            "t",
            d.text(ALNUM, 14),
            d.text(HEX, 64)
        ))
    }),
    ("Databricks", |d| {
        bare(format!("da{}{}", "pi", d.text(HEX, 32)))
    }),
    ("Grafana", |d| {
        bare(format!(
            "gl{}_{}_{}",
            "sa",
            d.text(ALNUM, 32),
            d.text(HEX, 8)
        ))
    }),
    ("New Relic", |d| {
        bare(format!("NR{}-{}", "AK", d.text(UPPER, 27)))
    }),
    ("Postman", |d| {
        bare(format!(
            "PM{}-{}-{}",
            "AK",
            d.text(HEX, 24),
            d.text(HEX, 34)
        ))
    }),
    ("Figma", |d| {
        bare(format!("fi{}_{}", "gd", d.text(WORD, 40)))
    }),
    ("age", |d| {
        bare(format!("AGE-SECRET-{}{}", "KEY-1", d.text(BASE32, 58)))
    }),
    ("AWS session token by its beginning", |d| {
        let length = d.between(350, 900);
        bare(format!("IQoJ{}{}", "b3JpZ2lu", d.text(BASE64, length)))
    }),
    ("web token", |d| web_token(d, 80)),
    ("long web token", |d| web_token(d, 5000)),
    ("card, Visa", |d| card(d, "4", 16)),
    ("card, Mastercard", |d| card(d, "53", 16)),
    ("IBAN, Germany", |d| iban(d, "DE", "", 18)),
    ("IBAN, United Kingdom", |d| iban(d, "GB", "NWBK", 14)),
];

/// Secrets that something around them announces.
const STATED: &[Kind] = &[
    ("AWS secret key", |d| {
        within("aws_secret_access_key = {}", d.text(BASE64, 40))
    }),
    ("AWS session token", |d| {
        let length = d.between(350, 1000);
        within("AWS_SESSION_TOKEN={}", d.text(BASE64, length))
    }),
    ("long bearer", |d| {
        within("Authorization: Bearer {}", d.text(WORD, 600))
    }),
    ("basic", |d| {
        let login = encoded(&format!("ann:{}", d.password()));
        within("Authorization: Basic {}", login)
    }),
    ("API key", |d| within("X-Api-Key: {}", d.text(ALNUM, 32))),
    ("client secret", |d| {
        within("client_secret={}", d.text(HEX, 40))
    }),
    ("one-time password key", |d| {
        let length = d.pick(&[&16, &32]);
        within(
            "otpauth://totp/shop?secret={}&issuer=shop",
            d.text(BASE32, *length),
        )
    }),
    ("Heroku", |d| within("HEROKU_API_KEY={}", d.uuid())),
    ("Django", |d| {
        let key = format!("django-insecure-{}", d.text(DJANGO, 50));
        within("SECRET_KEY = '{}'", key)
    }),
    ("Flask", |d| within("SECRET_KEY = '{}'", d.text(DJANGO, 50))),
    ("Azure storage key", |d| {
        let key = format!("{}==", d.text(BASE64, 86));
        within(
            "AccountName=shop;AccountKey={};EndpointSuffix=core.windows.net",
            key,
        )
    }),
    ("Azure signature", |d| {
        let signature = format!("{}%3D", d.text(ALNUM, 43));
        within(
            "https://shop.blob.core.windows.net/c?sv=2022-11-02&sig={}",
            signature,
        )
    }),
    ("Docker auth", |d| {
        let login = encoded(&format!("ann:{}", d.password()));
        within("{\"auths\": {\"registry\": {\"auth\": \"{}\"}}}", login)
    }),
    ("cookie", |d| {
        within(
            "Set-Cookie: session={}; Path=/; HttpOnly",
            d.text(ALNUM, 32),
        )
    }),
    ("password", |d| within("password: {}", d.password())),
    ("DB_PASS", |d| within("DB_PASS={}", d.password())),
    ("smtp_pass", |d| within("smtp_pass: {}", d.password())),
    ("REDIS_AUTH", |d| within("REDIS_AUTH={}", d.password())),
    ("quoted password", |d| {
        within("\"password\": \"{}\"", d.password())
    }),
    ("--password", |d| {
        within("deploy --user ann --password {} --now", d.password())
    }),
    ("mysql -p", |d| {
        within("mysql -u root -p{} shop", d.password())
    }),
    ("IDENTIFIED BY", |d| {
        within("CREATE USER 'ann' IDENTIFIED BY '{}';", d.password())
    }),
    ("define", |d| {
        within("define('DB_PASSWORD', '{}');", d.password())
    }),
    ("element", |d| {
        within("<password>{}</password>", d.password())
    }),
    ("netrc", |d| {
        within("machine example.org login ann password {}", d.password())
    }),
    ("wide sign", |d| within("password＝{}", d.text(ALNUM, 14))),
    ("English", |d| {
        within("The password for the shop is {}", d.password())
    }),
    ("German", |d| within("Das Passwort ist {}", d.password())),
    ("Vietnamese", |d| within("mật khẩu là {}", d.password())),
    ("Japanese", |d| {
        within("パスワードは{}です", d.text(ALNUM, 14))
    }),
    ("Spanish", |d| within("la contraseña es {}", d.password())),
    ("French", |d| within("le mot de passe est {}", d.password())),
    ("Portuguese", |d| within("a senha é {}", d.password())),
    ("Chinese", |d| within("密码是{}", d.text(ALNUM, 14))),
    ("Russian", |d| within("Пароль: {}", d.password())),
    ("Korean", |d| {
        within("비밀번호는 {} 입니다", d.text(ALNUM, 14))
    }),
    ("address", |d| {
        within("postgres://ann:{}@db.internal:5432/shop", d.text(ALNUM, 12))
    }),
    ("address with signs", |d| {
        let password = format!(
            "{}/{}#{}",
            d.text(ALNUM, 5),
            d.text(ALNUM, 5),
            d.text(ALNUM, 4)
        );
        within("postgres://ann:{}@db.internal:5432/shop", password)
    }),
    ("token in an address", |d| {
        within("https://{}@git.example/ann/shop.git", d.text(LOWER, 40))
    }),
    ("name and value", |d| {
        within("name: DB_PASSWORD, value: {}", d.password())
    }),
    ("RSA key", |d| {
        lines(
            d,
            "-----BEGIN RSA PRIVATE KEY-----",
            "-----END RSA PRIVATE KEY-----",
        )
    }),
    ("OpenSSH key", |d| {
        lines(
            d,
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "-----END OPENSSH PRIVATE KEY-----",
        )
    }),
    ("PGP key", |d| {
        let begin = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n";
        lines(d, begin, "-----END PGP PRIVATE KEY BLOCK-----")
    }),
    ("PuTTY key", |d| {
        let begin = "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 12";
        lines(d, begin, "Private-MAC: 9f86d081884c7d65")
    }),
];

/// A way to write a statement down, and how the secret looks there.
type Surroundings = (&'static str, fn(&str) -> String, fn(&str) -> String);

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

const SURROUNDINGS: &[Surroundings] = &[
    ("alone", same, same),
    (
        "on a line of its own",
        |text| format!("before\n{text}\nafter"),
        same,
    ),
    (
        "in a sentence",
        |text| format!("For the deployment: {text} (do not share)"),
        same,
    ),
    (
        "after an escaped line break",
        |text| format!("first\\n{}\\nlast", json(text)),
        json,
    ),
    (
        "after an escaped tab",
        |text| format!("column\\t{}\\tmore", json(text)),
        json,
    ),
    (
        "in JSON",
        |text| format!("{{\"log\": \"{}\"}}", json(text)),
        json,
    ),
    (
        "in JSON in JSON",
        |text| format!("{{\"a\": \"{{\\\"log\\\": \\\"{}\\\"}}\"}}", nested(text)),
        nested,
    ),
    (
        "in colour",
        |text| format!("\x1b[32m{text}\x1b[0m done"),
        same,
    ),
    (
        "in a list of Markdown",
        |text| format!("- `{text}`\n- next"),
        same,
    ),
    (
        "in a comment",
        |text| format!("# old\n# {text}\nx = 1"),
        same,
    ),
];

/// Surroundings for tokens only: a statement would lose its form there.
const TOKEN_SURROUNDINGS: &[Surroundings] = &[
    (
        "in a variable",
        |text| format!("DEPLOY_WITH={text}\nPORT=80"),
        same,
    ),
    (
        "in YAML",
        |text| format!("deploy:\n  with: {text}\n  port: 80"),
        same,
    ),
    ("after a word", |text| format!("TOKEN_{text}"), same),
    (
        "in the query of an address",
        |text| format!("https://a.example/?q={}&page=2", percent(text)),
        percent,
    ),
    ("in Japanese", |text| format!("鍵は{text}です。"), same),
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
    for (number, ((kind, draw), is_token)) in all.enumerate() {
        let mut random = Draw(20_261_115 + number as u64);
        let more = if is_token { TOKEN_SURROUNDINGS } else { &[] };
        let surroundings: Vec<&Surroundings> = SURROUNDINGS.iter().chain(more).collect();
        for round in 0..DRAWN {
            let (statement, secret) = draw(&mut random);
            let (place, write, form) = surroundings[round % surroundings.len()];
            // A word before digits or a country's letters makes another word of them.
            if *place == "after a word" && secret.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let text = write(&statement);
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
