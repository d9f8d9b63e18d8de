//! The doubles of memory services: they refuse what the services do not know, and take every request
//! of the official clients, which `scripts/remote-doubles` fetches.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use mnemon_testkit::fakes::{DOUBLE_KEY, MemoryDouble, MemoryService};

/// `http://127.0.0.1:PORT`.
fn base(double: &MemoryDouble) -> String {
    let url = double.url();
    let (_, base) = url.split_once('+').unwrap();
    base.split('?').next().unwrap().to_owned()
}

/// The status of the answer to a request.
fn status(double: &MemoryDouble, line: &str, headers: &str, body: &str) -> u16 {
    let address = base(double);
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: x\r\naccept: */*\r\n{headers}content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn requests_of_another_form_are_refused_and_kept() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let key = format!("authorization: Api-Key {DOUBLE_KEY}\r\n");
    let json = format!("{key}content-type: application/json\r\n");
    let users = "POST /api/v2/users";
    let good = r#"{"user_id": "ann"}"#;
    assert_eq!(status(&double, users, "", good), 401);
    let token = json.replace("Api-Key", "Bearer");
    assert_eq!(status(&double, users, &token, good), 401);
    assert_eq!(
        double.refused(),
        Vec::<String>::new(),
        "a wrong key is not a form"
    );
    for (line, headers, body, why) in [
        (users, &key, good, "content type"),
        (users, &json, "{", "not JSON"),
        (
            users,
            &json,
            r#"{"user_id": 7}"#,
            "user_id is not of type Text",
        ),
        (users, &json, "{}", "user_id is missing"),
        (
            users,
            &json,
            r#"{"user_id": "a", "x": 1}"#,
            "unknown field x",
        ),
        ("POST /api/v3/users", &json, good, "not a route"),
        ("PUT /api/v2/users", &json, good, "not a route"),
        (
            "GET /api/v2/threads?size=1",
            &key,
            "",
            "unknown parameter size",
        ),
        ("GET /api/v2/threads?page_size=0", &key, "", "page_size"),
        ("GET /api/v2/threads", &json, good, "no body"),
    ] {
        assert_eq!(status(&double, line, headers, body), 400, "{line} {body}");
        let last = double.refused().pop().unwrap();
        assert!(last.contains(why), "{last}");
    }
    assert_eq!(double.refused().len(), 10);
    assert_eq!(status(&double, users, &json, good), 201);
}

/// Runs only if `MNEMON_REMOTE_CLIENTS` names the folder that `scripts/remote-doubles` made.
#[test]
fn official_clients_are_understood() {
    let Some(folder) = std::env::var_os("MNEMON_REMOTE_CLIENTS") else {
        return;
    };
    let folder = std::path::PathBuf::from(folder);
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/clients/remote_clients.py"
    );
    for service in [
        MemoryService::Mem0,
        MemoryService::Mem0V1,
        MemoryService::Zep,
        MemoryService::Acontext,
    ] {
        let double = MemoryDouble::start(service);
        let mut run = Command::new(folder.join("python/bin/python"));
        run.args([program, service.scheme(), &base(&double), DOUBLE_KEY]);
        run.env("MEM0_TELEMETRY", "False");
        run.env("MEM0_DIR", folder.join("mem0"));
        if service == MemoryService::Mem0V1 {
            // Both generations have the same name, so the older one lies apart.
            run.env("PYTHONPATH", folder.join("mem0-v1"));
        }
        let done = run.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(
            double.refused(),
            Vec::<String>::new(),
            "{service:?}: {said}"
        );
        assert!(done.status.success(), "{service:?}: {said}");
        assert_eq!(double.memories().len(), 1, "{service:?}");
    }
}
