mod drawn;
mod ordinary;

use proptest::prelude::*;

use super::*;

fn masked(text: &str) -> String {
    mask(text, &find(text))
}

fn kinds(text: &str) -> Vec<&'static str> {
    find(text).iter().map(|secret| secret.kind).collect()
}

/// Put together here so that no scanner takes this file for a leak.
fn key(prefix: &str, rest: &str) -> String {
    format!("{prefix}{rest}")
}

const BASE62: &str = "a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3";
const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015";

#[test]
fn private_keys_go_with_their_lines() {
    let block =
        |sort: &str| format!("-----BEGIN {sort}-----\nMIIEow\nIBAAKC\n-----END {sort}-----");
    for sort in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let text = format!("before\n{}\nafter", block(sort));
        assert_eq!(
            masked(&text),
            "before\n[secret removed: private key]\nafter"
        );
    }
    let public = block("PUBLIC KEY");
    assert_eq!(masked(&public), public);
    let both = format!("{}\n{}", block("PUBLIC KEY"), block("EC PRIVATE KEY"));
    assert!(masked(&both).ends_with("\n[secret removed: private key]"));
    // A block that was cut off is still a key.
    assert_eq!(
        masked("-----BEGIN PRIVATE KEY-----\nMIIE"),
        "[secret removed: private key]"
    );
}

#[test]
fn passwords_in_addresses() {
    assert_eq!(
        masked("use postgres://ann:t0psecret@db.internal:5432/app now"),
        "use postgres://ann:[secret removed: password in an address]@db.internal:5432/app now"
    );
    assert_eq!(
        kinds("redis://:hunter2@localhost"),
        ["password in an address"]
    );
    // The password itself may hold an @.
    assert_eq!(
        masked("https://u:p@ss@h/x"),
        "https://u:[secret removed: password in an address]@h/x"
    );
    for fine in [
        "https://example.org:8080/a@b:c",
        "https://ann@example.org/x",
        "postgres://user:password@localhost/db",
        "postgres://ann:${DB_PASSWORD}@localhost/db",
        "postgres://ann:<password>@localhost/db",
        "https://ann:****@host/",
        "see http://a.b/c and mail to: d@e.f",
    ] {
        assert_eq!(masked(fine), fine);
    }
}

#[test]
fn what_is_said_to_be_a_key() {
    let cases = [
        format!("API_KEY={BASE62}"),
        format!("api-key: {BASE62}"),
        format!("\"accessToken\": \"{BASE62}\","),
        format!("client_secret = '{HEX}'"),
        format!("config[\"secret\"] = \"{HEX}\""),
        format!("token => {HEX}"),
        format!("Authorization: Bearer {BASE62}"),
        format!(
            "aws_secret_access_key = {}/{}+Q",
            "a8Kd03LmQx7Zt5Rv1Yb9", "Nc2Ws4Ej6Hu0Pg8Fi3"
        ),
    ];
    for text in cases {
        assert_eq!(kinds(&text), ["key or token"], "{text}");
        assert!(!masked(&text).contains("d0"), "{}", masked(&text));
    }
    for text in [
        "password = \"hunter2!x\"",
        "DB_PASSWORD=s3cr3tpw9",
        "pwd: Tr0ub4dor&3",
        "the password is Xk9mQ2vL7pTz",
        "password: j-N&NdLvN$ax",
        "Passwort: Xk9mQ2vL7pTz",
        "mật khẩu: Xk9mQ2vL7pTz",
        "next page, パスワード: Xk9mQ2vL7pTz",
        "curl -u admin:Xk9mQ2vL7pTz https://example.org",
        "curl --user 'admin:Xk9mQ2vL7pTz' https://example.org",
    ] {
        assert_eq!(kinds(text), ["password"], "{text}");
    }
}

#[test]
fn passwords_are_found_however_they_are_stated() {
    for form in [
        "redis-cli -a {} ping",
        "deploy --password={}",
        "mysql -uroot -p{}",
        "mysqldump -p{} shop > shop.sql",
        "sshpass -p {} ssh host",
        "docker login -u ann -p {}",
        "wget --password={} https://example.org",
        "ALTER USER ann WITH PASSWORD '{}';",
        "conn.setPassword(\"{}\");",
        "password: str = \"{}\"",
        "<add key=\"Password\" value=\"{}\"/>",
        "ｐａｓｓｗｏｒｄ：{}",
        "Das Passwort für den Server ist {}",
        "mật khẩu của ann là {}",
        "mật khẩu mới là {}",
        "mật khẩu hiện tại của máy chủ là {}",
        "パスワードは{}です",
        "サーバのパスワードは「{}」です",
        "密码为：{}",
        "{\\\"password\\\":\\\"{}\\\"}",
        "{\\\\\\\"password\\\\\\\":\\\\\\\"{}\\\\\\\"}",
        "password%3D{}",
        "password%253D{}",
        "password\\u003d{}",
        "&quot;password&quot;:&quot;{}&quot;",
        "spring.datasource.password={}",
        "jdbc:postgresql://h/db?user=ann&password={}&ssl=true",
        "Server=x;User Id=sa;Password={};Encrypt=true",
        "| password | {} |",
        "password\t{}",
        "Password - {}",
        "password → {}",
        "**Password:** {}",
        "`password`: `{}`",
        "DB_PASSWORD_2={}",
        "the password for root is now {}",
        "\u{1b}[32mpassword\u{1b}[0m: {}",
    ] {
        let text = form.replacen("{}", "Xk9mQ2vL7pTz", 1);
        let clean = masked(&text);
        assert_eq!(clean, form.replacen("{}", "[secret removed: password]", 1));
    }
}

#[test]
fn keys_are_found_however_they_are_stated() {
    for form in [
        format!("Authorization: Token {HEX}"),
        format!("Authorization: ApiKey {BASE62}"),
        format!("curl -b 'session={BASE62}' https://example.org"),
        format!("Cookie: theme=dark; session={BASE62}; other={HEX}"),
        format!("document.cookie = \"session={BASE62}\""),
        format!("<string name=\"api_key\">{BASE62}</string>"),
        format!("//registry.example.org/:_authToken={BASE62}"),
        format!("os.environ[\"API_KEY\"] = \"{BASE62}\""),
        format!("NEXTAUTH_SECRET={BASE62}="),
        format!("VAULT_TOKEN=s.{BASE62}"),
        format!("https://{BASE62}:x-oauth-basic@git.example/x"),
    ] {
        let clean = masked(&form);
        assert!(clean.contains("[secret removed: "), "{clean}");
        assert!(!clean.contains("d03") && !clean.contains("d081"), "{clean}");
    }
    for form in [
        "APIキーは{}です",
        "API キーは {} です",
        "API キー：{}",
        "本番のアクセスキーは「{}」です",
        "トークン: {}",
        "密钥是{}",
        "令牌：{}",
        "토큰은 {}",
        "khoá API: {}",
    ] {
        let text = form.replacen("{}", BASE62, 1);
        let clean = masked(&text);
        assert_eq!(
            clean,
            form.replacen("{}", "[secret removed: key or token]", 1)
        );
    }
    let heroku = "heroku api key: 01234567-89ab-cdef-0123-456789abcdef";
    assert_eq!(
        masked(heroku),
        "heroku api key: [secret removed: key or token]"
    );
}

#[test]
fn prose_and_programs_are_left_alone() {
    let fine = [
        "The key is to ask early; the token of gratitude was a cake.",
        "The password is required; the API key is stored in the vault, the token is 32 characters.",
        "docker run -u 1000:1000 and ps -u root; sort -u a:b",
        "The password is Don't-Tell, says the joke.",
        "Mật khẩu: hãy hỏi quản trị viên. Khóa API nằm trong kho bí mật.",
        "パスワード: 管理者に聞いてください。トークンの設定は環境変数にある。",
        "password: see the vault, entry 12",
        "token: &str, key: Option<String>, secret: SecretPolicy",
        "let key = self.config.notes.preview_chars;",
        "let token = formula_tokens(query).into_iter().next();",
        "api_key = os.environ[\"API_KEY_2024\"]",
        "API_KEY=your-api-key-1234567890abcdef",
        "token = \"<paste it here>\"",
        "primary_key = user_2024_09_17_eu_west_1",
        "cache_key: 9f86d081884c7d659a2feaa0c55ad015",
        "idempotency-key: 3f2a91c0d7e84b6f9a1c2d3e4f5a6b7c",
        "key = 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f",
        "PWD=/srv/app1/data2 and pwd: ~/code/shop2/src",
        "last_password: 2026-11-15T14:22:10.123Z",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "sk-learn-pipelines-and-transformers-explained",
        "the task-force, desk-to-desk, risk-averse",
        "password: String = Password::from(input2)",
        "Basic authentication is off; Bearer tokens are preferred.",
        "MAX_TOKENS = 200000, key=value, tokens: 1234567890123456",
        "keyboardShortcutForNextToken: someCamelCaseIdentifierName",
        "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    ];
    for text in fine {
        assert_eq!(masked(text), text);
    }
}

#[test]
fn a_name_says_what_its_text_is() {
    let named = |name: &str, text: &str| mask(text, &find_under(name, text));
    assert_eq!(named("apiToken", BASE62), "[secret removed: key or token]");
    assert_eq!(
        named("password", "hunter2!x, since May"),
        "[secret removed: password], since May"
    );
    assert_eq!(named("a".repeat(1000).as_str(), "plain"), "plain");
    assert_eq!(
        named(&format!("{}_token", "ã".repeat(1000)), HEX),
        "[secret removed: key or token]"
    );
    // What the text holds is found under any name.
    let text = format!("use {}", key("gh", &format!("p_{BASE62}")));
    assert_eq!(
        named("text", &text),
        "use [secret removed: repository token]"
    );
    assert_eq!(
        named("token", &text),
        "use [secret removed: repository token]"
    );
    for (name, text) in [
        ("cache_key", HEX),
        ("digest", HEX),
        ("token", "[secret removed: key or token]"),
        ("", "password"),
    ] {
        assert_eq!(named(name, text), text, "{name}");
    }
}

#[test]
fn nothing_is_left_of_two_that_overlap() {
    // The key begins within what looks like a password, and goes on after it.
    let text =
        "pwd: Tr0ub4dor-----BEGIN PRIVATE KEY-----\nMIIEow\n-----END PRIVATE KEY-----\nafter";
    assert_eq!(masked(text), "pwd: [secret removed: password]\nafter");
}

#[test]
fn a_policy_is_a_word() {
    assert_eq!("mask".parse::<SecretPolicy>().unwrap(), SecretPolicy::Mask);
    let error = "hide".parse::<SecretPolicy>().unwrap_err();
    assert!(error.to_string().contains("refuse, mask, allow"), "{error}");
}

#[test]
fn every_rule_has_an_example_and_a_counter_example() {
    for rule in rules::RULES {
        let example = rule.example.concat();
        let examples: Vec<String> = match &rule.form {
            rules::Form::Prefix(prefix) => {
                let starts = prefix.starts.iter();
                starts.map(|start| format!("{start}{example}")).collect()
            }
            _ => vec![example],
        };
        for example in &examples {
            assert_eq!(kinds(example), [rule.kind], "{example}");
        }
        let counter_example = rule.counter_example;
        assert_eq!(masked(counter_example), counter_example);
    }
}

#[test]
fn every_kind_is_documented() {
    let page = include_str!("../../../../docs/secrets.md");
    for rule in rules::RULES {
        assert!(page.contains(rule.kind), "{}", rule.kind);
    }
}

#[test]
fn the_work_grows_with_the_text_and_not_faster() {
    // A lot of everything that begins something and does not end it.
    let pieces = "\
        ://-----BEGIN key=a:token=eyJ.sk-|key=|key=\"|password='|password is |password for |\
        password: |--password |pwd=a1!|cookie: a=|https://a|https://a:b|a://b:c/@|-----BEGIN |\
        -----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|PuTTY-User-Key-File-3: |eyJ-|\
        eyJhbGciOiJI.|eyJhbGciOiJI-eyJ.|sk-|xoxb-|ghp_|mysql -p -p| -u a:|4111 1111 |\
        DE89 3704 |\\\\\\|\\n|%25|&#|パスワードは|password＝|<password>|name: token, value: |\
        12345678:AA|bearer ";
    for piece in pieces.split('|') {
        let work = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            work::take();
            let _ = find(&text);
            work::take()
        };
        let (one, four) = (work(10_000), work(40_000));
        // Each byte is judged a bounded number of times, however many begin something.
        assert!(four <= 600 * 40_000, "{piece}: {four}");
        assert!(four <= one * 5, "{piece}: {one} and {four}");
    }
}

#[test]
fn a_mebibyte_of_bait_is_read_in_linear_time() {
    let bait = "://-----BEGIN key=a:token=eyJ.sk- password is -u a:\\n%3A";
    let text = bait.repeat(1024 * 1024 / bait.len());
    work::take();
    let _ = find(&text);
    let work = work::take();
    assert!(work <= 60 * text.len(), "{work}");
}

proptest! {
    #[test]
    fn places_lie_within_the_text_and_apart(
        parts in proptest::collection::vec(
            prop_oneof![
                any::<String>(),
                "[a-zA-Z0-9=:/@ \"-]{0,60}",
                Just(format!("key={BASE62}")),
                Just(key("gh", &format!("p_{BASE62}"))),
                Just("https://a:b4ssw0rd@c ".to_owned()),
                Just("-----BEGIN PRIVATE KEY-----".to_owned()),
            ],
            0..6,
        ),
    ) {
        let text = parts.concat();
        let found = find(&text);
        let mut end = 0;
        for secret in &found {
            prop_assert!(secret.start >= end && secret.end > secret.start);
            prop_assert!(text.is_char_boundary(secret.start));
            prop_assert!(text.is_char_boundary(secret.end));
            end = secret.end;
        }
        prop_assert!(end <= text.len());
    }

    #[test]
    fn what_was_masked_stays_as_it_is(
        parts in proptest::collection::vec(
            prop_oneof![
                "[a-z ]{0,12}",
                Just(format!(" api_key={BASE62} ")),
                Just(key(" gh", &format!("p_{BASE62} "))),
                Just(" https://a:b4ssw0rd@c ".to_owned()),
                Just(" password: \"hunter2!x\" ".to_owned()),
                Just("\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n".to_owned()),
            ],
            0..8,
        ),
    ) {
        let once = masked(&parts.concat());
        prop_assert_eq!(&masked(&once), &once);
    }
}
