//! Actions of the administration on the web page, its quotas, and notices about parts that it leaves
//! out.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::pages::{Browser, key, shows, token};
use super::webhooks::{ALLOWED, Receiver, create, give_up};
use super::{Answer, Server};
use crate::sandbox::Sandbox;

/// The status of a request with a key.
fn status_of(server: &Server, key: &str) -> u16 {
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str())];
    server.ask("GET", "/v1/notes/stats", &headers, "").status
}

/// The secret that a page shows once.
#[track_caller]
fn secret(page: &Answer) -> String {
    shows(page, &["shown only now"]);
    let (_, rest) = page.body.split_once("data-copy><code>").unwrap();
    rest.split('<').next().unwrap().to_owned()
}

/// The prefix of the only valid key with this name.
fn prefix_of(sandbox: &Sandbox, name: &str) -> String {
    let listed = sandbox.run(&["key", "list", "--json"]).json();
    let all = listed["keys"].as_array().unwrap().iter();
    let mut valid = all.filter(|key| key["name"] == name && key["expires"].is_null());
    valid.next().unwrap()["prefix"].as_str().unwrap().to_owned()
}

#[test]
fn a_key_is_rotated_on_the_page_with_and_without_an_overlap() {
    let sandbox = Sandbox::new();
    let admin = key(&sandbox, &["admin", "--rights", "admin"]);
    let first = key(&sandbox, &["laptop", "--rights", "read"]);
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::sign_in(&server, &admin);
    let path = format!("/admin/keys/{}/rotate", prefix_of(&sandbox, "laptop"));
    shows(&browser.get("/admin"), &[&path, "laptop"]);
    shows(
        &browser.get(&path),
        &["Rotate this key?", "laptop", "stays valid"],
    );
    let wrong = browser.post(&path, "overlap=soon");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert!(wrong.body.contains("<code>overlap</code>"), "{wrong:?}");
    let second = secret(&browser.post(&path, "overlap=1h"));
    assert_eq!(status_of(&server, &first), 200, "it overlaps");
    assert_eq!(status_of(&server, &second), 200);
    // The secret is shown in one answer, and no page leads to it again.
    assert!(!browser.get("/admin").body.contains(&second));
    let path = format!("/admin/keys/{}/rotate", prefix_of(&sandbox, "laptop"));
    let third = secret(&browser.post(&path, "overlap=0s"));
    assert_eq!(status_of(&server, &third), 200);
    while status_of(&server, &second) != 401 {}
    assert_eq!(status_of(&server, &first), 200, "its overlap goes on");
    shows(&browser.get("/admin/audit"), &["key rotate"]);
}

#[test]
fn keys_are_sorted_by_the_column_of_the_address() {
    let sandbox = Sandbox::new();
    let admin = key(&sandbox, &["bruno", "--rights", "admin"]);
    key(&sandbox, &["ann", "--rights", "write"]);
    key(&sandbox, &["carla", "--rights", "read"]);
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::sign_in(&server, &admin);
    let order = |path: &str| {
        let page = browser.get(path).body;
        let mut names = ["ann", "bruno", "carla"];
        names.sort_by_key(|name| page.find(&format!("<td><bdi>{name}</bdi>")).unwrap());
        names
    };
    assert_eq!(order("/admin?sort=name"), ["ann", "bruno", "carla"]);
    assert_eq!(order("/admin?sort=-name"), ["carla", "bruno", "ann"]);
    assert_eq!(order("/admin?sort=rights"), ["bruno", "carla", "ann"]);
    let page = browser.get("/admin?sort=name");
    shows(
        &page,
        &["aria-sort=\"ascending\"", "href=\"/admin?sort=-name\""],
    );
}

#[test]
fn a_delivery_that_was_given_up_is_sent_again_from_the_page() {
    let sandbox = Sandbox::new();
    sandbox.config(ALLOWED);
    let receiver = Receiver::start(500);
    let (id, _) = create(&sandbox, &receiver.url, &[]);
    sandbox.run(&["add", "one", "--id", "a1"]).ok();
    give_up(&sandbox);
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::new(&server);
    shows(&browser.get("/"), &["that were given up: 1"]);
    let path = format!("/admin/webhooks/{id}/failed");
    shows(&browser.get("/admin"), &[&format!("href=\"{path}\">1</a>")]);
    shows(
        &browser.get(&path),
        &["Send again", "not on the public internet"],
    );
    let again = || browser.post(&format!("/admin/webhooks/{id}/redeliver"), "number=1");
    let refused = again();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("answered 500"), "{refused:?}");
    assert_eq!(receiver.next().contents(), ["one"]);
    shows(&browser.get(&path), &["Send again"]);
    receiver.status.store(200, Ordering::SeqCst);
    let sent = again();
    assert_eq!(sent.status, 303, "{sent:?}");
    assert_eq!(receiver.next().contents(), ["one"]);
    let shown = browser.get(sent.header("location").unwrap());
    shows(&shown, &["Delivered.", "None is left."]);
    assert_eq!(again().status, 404, "it has arrived");
}

#[test]
fn sign_ins_count_as_requests_of_their_tenant_and_wrong_keys_do_not() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrequests_per_minute = 3\n");
    let admin = key(&sandbox, &["admin", "--rights", "admin"]);
    let server = Server::start(&sandbox, &[]);
    let token = token(&server.get("/sign-in").body);
    let enter = |key: &str| {
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        let form = format!("token={token}&key={key}");
        server.ask("POST", "/sign-in", &headers, &form)
    };
    for _ in 0..9 {
        assert_eq!(enter("mnemon_wrong").status, 401);
    }
    let mut entered = 0;
    let refused = loop {
        let answer = enter(&admin);
        if answer.status != 303 {
            break answer;
        }
        entered += 1;
        assert!(entered < 100, "no sign-in is refused");
    };
    assert!(entered >= 3, "{entered} sign-ins of 3 requests");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert!(refused.header("set-cookie").is_none(), "{refused:?}");
    assert!(refused.body.contains("Too many requests"), "{refused:?}");
    assert_eq!(status_of(&server, &admin), 429, "the API shares the quota");
}

#[test]
fn the_graph_says_how_many_sources_and_derived_records_it_leaves_out() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let add = |id: String, sources: &[String]| {
        let record = json!({"id": id, "content": format!("text of {id}"), "derived_from": sources});
        let added = server.post("/v1/records", &record);
        assert_eq!(added.status, 200, "{added:?}");
    };
    let named = |name: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{name}{number}")).collect()
    };
    for source in named("source", 26) {
        add(source, &[]);
    }
    add("hub".to_owned(), &named("source", 26));
    for derived in named("derived", 30) {
        add(derived, &["hub".to_owned()]);
    }
    let chain = named("link", 5);
    add(chain[0].clone(), &[]);
    for pair in chain.windows(2) {
        add(pair[1].clone(), &pair[..1]);
    }
    let browser = Browser::new(&server);
    let hub = browser.get("/records/hub");
    shows(&hub, &["2 more sources are not shown", "At least "]);
    assert!(hub.body.contains("more derived record"), "{}", hub.body);
    let drawn = hub.body.matches("class=\"node").count();
    assert_eq!(drawn, 24 + 1 + 24);
    let end = browser.get("/records/link4");
    shows(&end, &["link1", "1 more source is not shown"]);
    let start = browser.get("/records/link0");
    shows(&start, &["link3", "the graph ends after 3 steps"]);
    let lone = browser.get("/records/source25");
    assert!(!lone.body.contains("more source"), "{}", lone.body);
}

#[test]
fn the_overview_shows_the_upkeep_of_the_server() {
    let sandbox = Sandbox::new();
    let args = ["add", "--id", "n1", "tea", "--ttl", "1s"];
    sandbox.run(&args).ok();
    sandbox.run(&["add", "--id", "n2", "coffee"]).ok();
    let server = Server::start(&sandbox, &["--upkeep", "1"]);
    let browser = Browser::new(&server);
    let mut page = browser.get("/");
    while !page.body.contains("Last upkeep") {
        page = browser.get("/");
    }
    shows(
        &page,
        &["Upkeep and learning", "since the start of the server"],
    );
    while !page.body.contains("expired records erased") {
        page = browser.get("/");
    }
}

#[test]
fn lone_surrogates_are_refused_and_shown_harmlessly() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let headers = [("Content-Type", "application/json")];
    let body = r#"{"id": "lone", "content": "a \ud800 b"}"#;
    let stored = server.ask("POST", "/v1/records", &headers, body);
    assert_eq!(stored.status, 400, "{stored:?}");
    let browser = Browser::new(&server);
    // The bytes of a lone surrogate, which are not UTF-8.
    for path in [
        "/search?q=%ED%A0%80",
        "/records?tag=%ED%A0%80",
        "/records/%ED%A0%80",
        "/conversations/%ED%A0%80",
    ] {
        let answer = browser.get(path);
        assert!(answer.status < 500, "{path}: {answer:?}");
        let kind = answer.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/html"), "{path}: {answer:?}");
    }
    let sent = browser.post("/admin/keys", "name=%ED%A0%80&rights=read");
    assert!(sent.status < 500, "{sent:?}");
}
