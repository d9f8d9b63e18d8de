//! Addresses of services: what they may hold, and how they are shown.

/// Checks the address of a service. It is shown and stored, so it must not hold a password; the
/// message does not repeat it, for the same reason.
pub(super) fn check(address: &str) -> Result<(), String> {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    if address.contains('@') {
        return Err("the address must not contain a user name or password".to_owned());
    }
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(()),
        _ => Err(format!(
            "`{}` is not an http or https address",
            address.escape_debug()
        )),
    }
}

/// The text with `***` in place of every `USER:PASSWORD@` of an address.
pub fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end = after
            .find(|c: char| matches!(c, '/' | '?' | '#') || c.is_whitespace())
            .unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        shown.push_str(before);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                shown.push_str("***@");
                shown.push_str(host);
            }
            None => shown.push_str(authority),
        }
        rest = tail;
    }
    shown.push_str(rest);
    shown
}

/// Whether an address has a password in `USER:PASSWORD@`. Everything up to the last `@` counts, as a
/// password may contain any character.
pub fn has_password(address: &str) -> bool {
    let rest = address.split_once("://").map_or("", |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_recognised_whatever_its_characters_are() {
        for with in ["p\u{3a}//u\u{3a}PW@host/db", "p\u{3a}//u\u{3a}P/W?#@host"] {
            assert!(has_password(with), "{with}");
        }
        for without in [
            "postgres://u@host:5432/db",
            "sqlite:a@b:c",
            "postgres://host:1/db",
        ] {
            assert!(!has_password(without), "{without}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for (text, shown) in [
            (
                "openai:m@http://u\u{3a}PW@host/v1",
                "openai:m@http://***@host/v1",
            ),
            (
                "http://u\u{3a}p@ss@h:1 and x://a\u{3a}b@c",
                "http://***@h:1 and x://***@c",
            ),
            ("https://host/v1?mail=a@b", "https://host/v1?mail=a@b"),
            ("sqlite:/home/a@b/m.db", "sqlite:/home/a@b/m.db"),
            ("", ""),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn an_address_holds_no_password_and_the_message_does_not_either() {
        for bad in [
            "http://u\u{3a}PW@host",
            "ftp://u\u{3a}PW@host",
            "u\u{3a}PW@host",
        ] {
            let error = check(bad).unwrap_err();
            assert!(!error.contains("PW"), "{error}");
        }
        for bad in ["", "host", "http://", "http:///x", "ftp://host"] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(check("https://host:1/v1"), Ok(()));
    }
}
