use axum::http::HeaderValue;

use super::*;

fn check(hosts: &[&str], uri: &str) -> u16 {
    let own = "10.1.2.3".parse().unwrap();
    let named = ["memory.example".to_owned(), "other.example:8443".to_owned()];
    let allowed = Hosts::new(own, &named).unwrap();
    let mut headers = HeaderMap::new();
    for host in hosts {
        let value = HeaderValue::from_bytes(host.as_bytes()).unwrap();
        headers.append(header::HOST, value);
    }
    match allowed.check(&headers, &uri.parse().unwrap()) {
        Ok(()) => 200,
        Err(problem) => problem.status,
    }
}

#[test]
fn a_host_is_a_name_and_a_port_and_nothing_else() {
    for (host, expected) in [
        ("localhost", 200),
        ("LOCALHOST:8750", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8750", 200),
        ("[0:0:0:0:0:0:0:1]", 200),
        ("10.1.2.3:80", 200),
        ("memory.example", 200),
        ("memory.example:443", 200),
        ("other.example:8443", 200),
        ("other.example:8444", 403),
        ("other.example", 403),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.2", 403),
        ("127.1", 403),
        ("0x7f000001", 403),
        ("2130706433", 403),
        ("[::2]", 403),
        ("[::ffff:127.0.0.1]", 403),
        ("", 400),
        ("evil.com@127.0.0.1", 400),
        ("user:pass@127.0.0.1:80", 400),
        ("127.0.0.1@evil.com", 400),
        ("127.0.0.1, evil.com", 400),
        ("127.0.0.1 evil.com", 400),
        (" 127.0.0.1", 400),
        ("127.0.0.1/", 400),
        ("127.0.0.1#evil.com", 400),
        ("127.0.0.1?evil.com", 400),
        ("http://127.0.0.1", 400),
        ("127.0.0.1:", 400),
        ("127.0.0.1:+80", 400),
        ("127.0.0.1:80:80", 400),
        ("127.0.0.1:65536", 400),
        ("127.0.0.1:8o", 400),
        ("%6cocalhost", 400),
        ("localhost.", 400),
        (".localhost", 400),
        ("local..host", 400),
        ("::1", 400),
        ("[::1", 400),
        ("[::1]8750", 400),
        ("[::1%25lo]", 400),
        ("[localhost]", 400),
        ("ｌocalhost", 400),
    ] {
        assert_eq!(check(&[host], "/mcp"), expected, "{host}");
    }
}

#[test]
fn a_host_is_named_once() {
    assert_eq!(check(&[], "/mcp"), 400);
    assert_eq!(check(&["localhost", "localhost"], "/mcp"), 400);
    assert_eq!(check(&["localhost", "evil.example"], "/mcp"), 400);
    assert_eq!(check(&["localhost:80"], "http://localhost:80/mcp"), 200);
    assert_eq!(check(&["localhost"], "http://evil.example/mcp"), 400);
    assert_eq!(check(&["localhost"], "http://evil@localhost/mcp"), 400);
}

#[test]
fn names_of_the_command_line_are_checked() {
    let own: IpAddr = "::1".parse().unwrap();
    let new = |name: &str| Hosts::new(own, &[name.to_owned()]);
    for name in [
        "memory.example",
        "memory.example:8443",
        "fd00::1",
        "[fd00::1]:80",
    ] {
        assert!(new(name).is_ok(), "{name}");
    }
    for name in [
        "",
        "https://memory.example",
        "a b",
        "me@memory.example",
        "*",
    ] {
        let said = new(name).unwrap_err().to_string();
        assert!(said.contains("HOST:PORT"), "{said}");
    }
}
