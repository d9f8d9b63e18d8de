//! The web page: every view and its main action, sessions, and stored text that tries to act.

use mnemon_server::http::PAGES;
use serde_json::{Value, json};

use super::{Answer, Server};
use crate::sandbox::Sandbox;

/// A browser without a script: it keeps its cookies, and sends the token of the pages with a form.
pub(super) struct Browser<'a> {
    server: &'a Server,
    cookies: String,
    token: String,
}

impl<'a> Browser<'a> {
    /// At a server that needs no key.
    pub(super) fn new(server: &'a Server) -> Self {
        let mut browser = Self {
            server,
            cookies: String::new(),
            token: String::new(),
        };
        browser.token = token(&browser.get("/").body);
        browser
    }

    pub(super) fn sign_in(server: &'a Server, key: &str) -> Self {
        let mut browser = Self {
            server,
            cookies: String::new(),
            token: token(&server.get("/sign-in").body),
        };
        let entered = browser.post("/sign-in", &format!("key={key}&to=%2Fsearch"));
        assert_eq!(entered.header("location"), Some("/search"), "{entered:?}");
        browser.keep_cookie(&entered);
        browser.token = token(&browser.get("/search").body);
        browser
    }

    fn keep_cookie(&mut self, answer: &Answer) {
        let cookie = answer.header("set-cookie").unwrap();
        let pair = cookie.split(';').next().unwrap();
        self.cookies = format!("{}; {pair}", self.cookies);
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        let cookies = ("Cookie", self.cookies.as_str());
        self.server.ask("GET", path, &[cookies], "")
    }

    pub(super) fn post(&self, path: &str, fields: &str) -> Answer {
        self.send(path, &format!("token={}&{fields}", self.token))
    }

    fn send(&self, path: &str, body: &str) -> Answer {
        let headers = [
            ("Cookie", self.cookies.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.server.ask("POST", path, &headers, body)
    }
}

/// The token of the first form of a page, or of its account.
pub(super) fn token(page: &str) -> String {
    let part = page.split("name=\"token\" value=\"").nth(1);
    let part = part.unwrap_or_default().split('"').next();
    part.unwrap_or_default().to_owned()
}

pub(super) fn key(sandbox: &Sandbox, args: &[&str]) -> String {
    let args = [&["key", "create"], args, &["--json"]].concat();
    sandbox.run(&args).json()["secret"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[track_caller]
pub(super) fn shows(answer: &Answer, words: &[&str]) {
    assert_eq!(answer.status, 200, "{answer:?}");
    for word in words {
        assert!(answer.body.contains(word), "no {word}: {}", answer.body);
    }
}

#[test]
fn a_newcomer_loads_the_demonstration_searches_explains_deletes_and_undoes() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut browser = Browser::new(&server);
    shows(
        &browser.get("/"),
        &[
            "This memory is empty",
            "mnemon add",
            "Load the demonstration",
        ],
    );
    let loaded = browser.post("/demo", "");
    assert_eq!(loaded.status, 303, "{loaded:?}");
    browser.keep_cookie(&loaded);
    shows(
        &browser.get("/"),
        &["demonstration memory", "By kind", "Recent changes"],
    );
    shows(
        &browser.get("/search?q=what+tea+does+Ann+prefer&budget=500"),
        &[
            "<mark>tea</mark>",
            "Why this score",
            "meaning",
            "of 500 tokens",
        ],
    );
    let record = browser.get("/records/demo-tea");
    shows(
        &record,
        &[
            "<ins>oolong</ins>",
            "<del>green</del>",
            "/records/demo-shopping",
        ],
    );
    let effect = browser.get("/records/demo-tea/delete");
    shows(
        &effect,
        &["2 derived records go with it", "Buy green tea", "Reminder"],
    );
    let gone = browser.post("/records/demo-tea/delete", "version=2");
    let commit = gone.header("location").unwrap_or_default().to_owned();
    assert!(commit.starts_with("/history/"), "{gone:?}");
    shows(
        &browser.get(&commit),
        &["Deleted.", "Undo", "deleted with its source"],
    );
    assert_eq!(browser.get("/records/demo-tea").status, 404);
    let commit = commit.split('?').next().unwrap();
    let undone = browser.post(&format!("{commit}/undo"), "");
    let restored = undone.header("location").unwrap_or_default().to_owned();
    shows(&browser.get(&restored), &["Undone."]);
    assert_eq!(browser.get("/records/demo-tea").status, 200);
    shows(&browser.get("/demo/remove"), &["are erased"]);
    assert_eq!(browser.post("/demo/remove", "").status, 303);
    assert!(!browser.get("/records").body.contains("demo-tea"));
}

/// The link repeats the query and the filters. It is shown only if there are more hits.
#[test]
fn a_search_shows_ten_hits_and_a_link_to_more() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for number in 0..12 {
        let note = json!({"content": format!("tea & cup {number}"), "user": "ann & bob"});
        assert_eq!(server.post("/v1/records", &note).status, 200);
    }
    let browser = Browser::new(&server);
    let hits = |path: &str| {
        let shown = browser.get(path).body;
        let more = shown.split_once("Show more results");
        let link = more.and_then(|(before, _)| before.rsplit_once("href=\""));
        let link = link.map(|(_, link)| link.split('"').next().unwrap().replace("&amp;", "&"));
        (shown.matches("<article").count(), link)
    };
    let (count, link) = hits("/search?q=tea+%26+cup&user=ann+%26+bob");
    assert_eq!(count, 10);
    assert_eq!(hits(&link.unwrap()), (12, None));
    assert_eq!(
        hits("/search?q=tea&limit=0"),
        (1, Some("/search?q=tea&budget=1000&limit=50".to_owned()))
    );
    assert_eq!(hits("/search?q=tea&limit=many").0, 10);
    assert_eq!(hits("/search?q=tea&limit=12"), (12, None));
}

#[test]
#[expect(clippy::too_many_lines, reason = "it has a line for each view")]
fn every_view_shows_its_matter() {
    let sandbox = Sandbox::new();
    for line in [
        "add --id n1 --user ann --tag tea --tag drinks Ann_prefers_tea",
        "chat append plan hello_there --user ann",
        "agent new reviewer --description Reviews",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = sandbox.run(&args);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    let server = Server::start(&sandbox, &[]);
    let skill =
        json!({"skills": [{"use_when": "deploying", "tool_sops": [{"tool": "t", "action": "a"}]}]});
    let made = server.post("/v1/skills/import", &skill).json();
    let skill = made["ids"][0].as_str().unwrap();
    let browser = Browser::new(&server);
    shows(
        &browser.get("/records?kind=note&tag=tea&order=oldest"),
        &["Ann_prefers_tea"],
    );
    shows(
        &browser.get("/search?tag=tea&part=hits"),
        &["Ann_prefers_tea"],
    );
    assert!(
        !browser
            .get("/search?q=tea&part=hits")
            .body
            .contains("<html")
    );
    shows(&browser.get("/history"), &["added", "n1"]);
    shows(
        &browser.get("/conversations"),
        &["/conversations/plan?user=ann"],
    );
    shows(
        &browser.get("/conversations/plan?user=ann"),
        &["hello_there", "What the model sees", "hot"],
    );
    let forked = browser.post("/conversations/plan/fork", "user=ann&to=copy");
    shows(
        &browser.get(forked.header("location").unwrap()),
        &["This is the copy", "hello_there"],
    );
    assert_eq!(
        browser
            .post("/conversations/plan/snapshots", "user=ann&label=s1")
            .status,
        303
    );
    shows(&browser.get("/skills"), &["deploying"]);
    assert_eq!(
        browser
            .post(&format!("/skills/{skill}/state"), "decision=pin")
            .status,
        303
    );
    shows(
        &browser.get(&format!("/skills/{skill}")),
        &["pinned", "deploying"],
    );
    shows(
        &browser.get("/agents"),
        &["reviewer", "No team is stored yet"],
    );
    shows(
        &browser.get("/agents/reviewer"),
        &["Parts of the prompt", "<h3>"],
    );
    shows(
        &browser.get("/admin"),
        &["No key exists", "Quotas", "no limit", "Policies"],
    );
    let made = browser.post("/admin/webhooks", "url=https%3A%2F%2Fhooks.invalid%2F");
    shows(&made, &["shown only now"]);
    shows(&browser.get("/admin"), &["hooks.invalid"]);
    shows(
        &browser.get("/admin/audit"),
        &["webhook create", "skill pin"],
    );
}

#[test]
fn stored_text_is_shown_and_never_acts() {
    let sandbox = Sandbox::new();
    let hostile = "<script>alert(1)</script><img src=x onerror=alert(1)> \u{1b}[31m \u{202e}evil \
                   [x](javascript:alert(1)) </pre></bdi>";
    let server = Server::start(&sandbox, &[]);
    let record = json!({
        "content": hostile, "id": "h<b>1", "user": "<i>u", "tags": ["<u>t"], "source": "<script>alert(1)</script>",
        "metadata": {"<script>": hostile}, "session": "<s>"
    });
    let stored = server.post("/v1/records", &record);
    assert_eq!(stored.status, 200, "{stored:?}");
    let long = json!({"content": format!("{}<script>", "x".repeat(1_000_000)), "id": "long"});
    assert_eq!(server.post("/v1/records", &long).status, 200);
    let said = json!({"content": hostile, "user": "<i>u"});
    server.post("/v1/conversations/talk/messages", &said);
    let skill = json!({"skills": [{"use_when": hostile, "tool_sops": [{"tool": "<b>", "action": hostile}]}]});
    let skill: Value = server.post("/v1/skills/import", &skill).json();
    let skill = skill["ids"][0].as_str().unwrap_or_default().to_owned();
    let browser = Browser::new(&server);
    let paths = [
        "/",
        "/records",
        "/records/h%3Cb%3E1",
        "/records/h%3Cb%3E1/delete",
        "/records/long",
        "/history",
        "/history/1",
        "/search?q=%3Cscript%3Ealert(1)%3C/script%3E+evil",
        "/conversations",
        "/conversations/talk?user=%3Ci%3Eu",
        "/skills",
        &format!("/skills/{skill}"),
        "/records/%3Cscript%3E",
        "/conversations/%3Cscript%3E",
        "/agents/%3Cscript%3E",
        "/teams/%3Cscript%3E",
        "/records?after=%3Cscript%3E",
        "/sign-in?to=%22%3E%3Cscript%3E",
        "/admin",
        "/admin/audit",
    ];
    for path in paths {
        is_harmless(path, &browser.get(path));
    }
}

/// Nothing that was stored acts on the page.
#[track_caller]
fn is_harmless(path: &str, answer: &Answer) {
    assert!(answer.status < 500, "{path}: {answer:?}");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self';"), "{path}: {policy}");
    for tag in [
        "<script>",
        "<img src=x",
        "href=\"javascript",
        "<i>u",
        "<b>1",
        "<u>t",
        "\u{1b}",
        "\u{202e}",
        " style=",
        " onclick",
    ] {
        assert!(
            !answer.body.contains(tag),
            "{path} has {tag:?}: {}",
            answer.body
        );
    }
    let bytes = answer.body.len();
    assert!(bytes < 150_000, "{path} has {bytes} bytes");
}

#[test]
fn text_in_files_and_in_names_never_acts_on_any_page() {
    const EVIL: &str = "<img src=x onerror=alert(1)>";
    let text = format!("# {EVIL}\n\n{EVIL} [x](javascript:alert(1)) <script>alert(1)</script>\n");
    let sandbox = Sandbox::new();
    for line in [
        "agent new evil --description <u>t",
        "team new crew --lead evil --member bob",
        "add --id n1 --user <i>u --tag <u>t <script>alert(1)</script>",
        "chat append talk <script>alert(1)</script> --user <i>u",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = sandbox.run(&args);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    let mut files = 0;
    for file in markdown(&sandbox.path(".microai")) {
        let known = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{known}\n{text}")).unwrap();
        files += 1;
    }
    assert!(files > 2, "agents and teams have files");
    let admin = key(&sandbox, &[EVIL, "--rights", "admin"]);
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::sign_in(&server, &admin);
    let skill =
        json!({"skills": [{"use_when": EVIL, "tool_sops": [{"tool": EVIL, "action": EVIL}]}]});
    let authorised = [
        ("Authorization", &*format!("Bearer {admin}")),
        ("Content-Type", "application/json"),
    ];
    let made = server.ask("POST", "/v1/skills/import", &authorised, &skill.to_string());
    let skill = made.json()["ids"][0].as_str().unwrap().to_owned();
    let made = browser.post(
        "/admin/webhooks",
        "url=https%3A%2F%2Fhooks.invalid%2F%3Cscript%3E",
    );
    assert_eq!(made.status, 200, "{made:?}");
    let page = browser.get("/admin").body;
    let part = |before: &str| {
        let (_, rest) = page.split_once(before).unwrap();
        rest.split(['/', '"']).next().unwrap().to_owned()
    };
    let (prefix, webhook) = (part("/admin/keys/"), part("/admin/webhooks/"));
    for page in PAGES.iter().filter(|page| page.method == "GET") {
        let path = match page.path.starts_with("/skills/") {
            true => page.path.replace("{id}", &skill),
            false => page.path.replace("{id}", "n1"),
        };
        let path = path
            .replace("{commit}", "1")
            .replace("{session}", "talk?user=%3Ci%3Eu")
            .replace("{agent}", "evil")
            .replace("{team}", "crew")
            .replace("{prefix}", &prefix)
            .replace("{webhook}", &webhook);
        let answer = browser.get(&path);
        // With keys there is no demonstration to remove.
        let is_there = matches!(answer.status, 200 | 303) || path == "/demo/remove";
        assert!(is_there, "{path}: {answer:?}");
        is_harmless(&path, &answer);
    }
}

/// The Markdown files in a folder and those below.
fn markdown(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(markdown(&path));
        } else if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
    files
}

#[test]
fn a_key_is_asked_for_and_its_session_ends() {
    let sandbox = Sandbox::new();
    let admin = key(&sandbox, &["admin", "--rights", "admin"]);
    let reader = key(&sandbox, &["reader", "--rights", "read"]);
    sandbox.run(&["add", "--id", "n1", "Ann prefers tea"]).ok();
    let server = Server::start(&sandbox, &[]);
    for page in PAGES.iter().filter(|page| page.method == "GET") {
        let path = page.path.replace(['{', '}'], "");
        let asked = server.get(&path);
        let to = asked.header("location").unwrap_or_default();
        assert!(
            asked.status == 303 && to.starts_with("/sign-in?to="),
            "{path}: {asked:?}"
        );
    }
    let mut stranger = Browser {
        server: &server,
        cookies: String::new(),
        token: token(&server.get("/sign-in").body),
    };
    assert_eq!(stranger.post("/sign-in", "key=mnemon_wrong").status, 401);
    assert_eq!(stranger.post("/records/n1/delete", "").status, 401);
    stranger.token.clear();
    assert_eq!(
        stranger.post("/sign-in", &format!("key={admin}")).status,
        403,
        "no token"
    );
    let elsewhere = Browser {
        server: &server,
        cookies: String::new(),
        token: token(&server.get("/sign-in").body),
    };
    let entered = elsewhere.post("/sign-in", &format!("key={admin}&to=%2F%2Fevil.example"));
    assert_eq!(
        entered.header("location"),
        Some("/"),
        "only to pages of this server"
    );
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let browser = Browser::sign_in(&server, &admin);
    shows(
        &browser.get("/records/n1"),
        &["Ann prefers tea", "Sign out"],
    );
    // The API takes no session, and a form of another session changes nothing.
    assert_eq!(browser.get("/v1/stats").status, 401);
    let other = Browser::sign_in(&server, &admin);
    assert_eq!(
        browser
            .send("/records/n1/delete", &format!("token={}", other.token))
            .status,
        403
    );
    assert_eq!(browser.send("/records/n1/delete", "").status, 403);
    // Rights are those of the key.
    let weak = Browser::sign_in(&server, &reader);
    assert!(!weak.get("/records/n1").body.contains("Delete…"));
    assert_eq!(weak.get("/admin").status, 403);
    assert_eq!(weak.post("/records/n1/delete", "").status, 403);
    shows(&browser.get("/records/n1"), &["Ann prefers tea"]);
    shows(&browser.get("/admin/audit"), &["403"]);
    assert_eq!(browser.post("/sign-out", "").status, 303);
    assert_eq!(browser.get("/records/n1").status, 303);
}

#[test]
fn a_form_of_another_origin_is_refused_and_one_of_our_own_host_is_not() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--allow-host", "memory.example"]);
    let token = token(&server.get("/").body);
    let send = |origin: &str| {
        let headers = [
            ("Host", "memory.example"),
            ("Origin", origin),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        server
            .ask("POST", "/demo/leave", &headers, &format!("token={token}"))
            .status
    };
    assert_eq!(send("https://evil.example"), 403);
    assert_eq!(send("null"), 403);
    assert_eq!(send("https://memory.example"), 303);
}

#[test]
fn assets_are_kept_and_small() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let page = server.get("/");
    for name in ["style.css", "page.js", "icon.svg"] {
        let at = page.body.find(&format!("/web/{name}?")).unwrap();
        let path = page.body[at..].split('"').next().unwrap();
        let asset = server.get(path);
        assert!(asset.header("cache-control").unwrap().contains("immutable"));
        assert!(
            asset.body.len() < 30_000,
            "{name} has {} bytes",
            asset.body.len()
        );
    }
    assert!(
        !page.body.contains("http://") && !page.body.contains("https://"),
        "no other server"
    );
}

#[test]
fn a_form_is_short() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::new(&server);
    let answer = browser.post("/demo/leave", &"a&".repeat(40_000));
    assert_eq!(answer.status, 413, "{answer:?}");
}

const HTML: (&str, &str) = ("Accept", "text/html,application/xhtml+xml");

#[test]
fn an_unknown_page_is_a_page_and_an_unknown_route_a_problem() {
    let sandbox = Sandbox::new();
    let admin = key(&sandbox, &["admin", "--rights", "admin"]);
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::sign_in(&server, &admin);
    let cookies = ("Cookie", browser.cookies.as_str());
    let missing = server.ask("GET", "/no-such-page", &[cookies, HTML], "");
    assert_eq!(missing.status, 404, "{missing:?}");
    assert!(
        missing.body.contains("does not lead to a page"),
        "{missing:?}"
    );
    assert!(missing.body.contains("Sign out"), "{missing:?}");
    let stranger = server.ask("GET", "/no-such-page", &[HTML], "");
    assert_eq!(stranger.status, 303, "{stranger:?}");
    let route = server.ask("GET", "/v1/no-such-route", &[cookies, HTML], "");
    assert_eq!(route.status, 401, "the API takes no session: {route:?}");
}

#[test]
fn pages_of_other_ports_of_this_machine_cannot_send_forms() {
    let sandbox = Sandbox::new();
    let admin = key(&sandbox, &["admin", "--rights", "admin"]);
    let server = Server::start(&sandbox, &[]);
    let form = format!("token={}&key={admin}", token(&server.get("/sign-in").body));
    let headers = [
        ("Origin", "http://localhost:1"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let refused = server.ask("POST", "/sign-in", &headers, &form);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.header("set-cookie").is_none());
}

#[test]
fn a_key_of_one_user_sees_buttons_for_its_own_records_and_what_goes_with_them() {
    let sandbox = Sandbox::new();
    let ann = key(&sandbox, &["ann", "--rights", "write", "--user", "ann"]);
    for line in [
        "add --id own --user ann Ann_prefers_tea",
        "add --id shared Everybody_sees_this",
        "add --id mine --user ann --derived-from own Ann_buys_tea",
        "add --id theirs --user bob --derived-from own Bob_buys_tea",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = sandbox.run(&args);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::sign_in(&server, &ann);
    shows(&browser.get("/records/own"), &["Delete…"]);
    assert!(!browser.get("/records/shared").body.contains("Delete…"));
    assert_eq!(browser.get("/records/shared/delete").status, 403);
    let effect = browser.get("/records/own/delete");
    shows(&effect, &["Ann_buys_tea", "Records of others"]);
    assert!(!effect.body.contains("Bob_buys_tea"));
    shows(&browser.get("/history/2"), &["Commit 2"]);
    assert!(!browser.get("/history/2").body.contains("/undo"));
    shows(&browser.get("/history/1"), &["/history/1/undo"]);
}

#[test]
fn ids_of_dots_have_links_that_work_and_long_tags_have_none() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let tag = "t".repeat(90);
    let record = json!({"id": "..", "content": "two dots", "tags": [tag]});
    assert_eq!(server.post("/v1/records", &record).status, 200);
    let browser = Browser::new(&server);
    shows(&browser.get("/records"), &["href=\"/records/~..\""]);
    shows(
        &browser.get("/records/~.."),
        &["two dots", "/records/~../delete"],
    );
    let record = browser.get("/records/~..").body;
    assert!(record.contains("#<bdi>ttt"), "{record}");
    assert!(
        !record.contains("?tag=ttt"),
        "no list has a filter for it: {record}"
    );
}

#[test]
fn the_audit_log_is_shown_page_by_page() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for number in 0..130 {
        let record = json!({"id": format!("n{number}"), "content": "x"});
        assert_eq!(server.post("/v1/records", &record).status, 200);
    }
    let browser = Browser::new(&server);
    let first = browser.get("/admin/audit");
    shows(&first, &["<td class=\"count\">130</td>"]);
    // The pages of the browser may be entries, too.
    let (_, next) = first.body.split_once("/admin/audit?before=").unwrap();
    let next: u64 = next.split_once('"').unwrap().0.parse().unwrap();
    let number = |number: u64| format!("<td class=\"count\">{number}</td>");
    shows(&first, &[&number(next)]);
    let second = browser.get(&format!("/admin/audit?before={next}"));
    shows(&second, &[&number(next - 1), &number(1), "First page"]);
    assert!(!second.body.contains(&number(next)), "{second:?}");
    assert!(!second.body.contains("Next page"), "{second:?}");
}

#[test]
fn a_long_message_is_cut_and_opens_as_a_whole() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let content = format!("{}END", "long ".repeat(2000));
    let said = json!({"content": content, "user": "ann"});
    assert_eq!(
        server.post("/v1/conversations/talk/messages", &said).status,
        200
    );
    let browser = Browser::new(&server);
    let page = browser.get("/conversations/talk?user=ann");
    shows(&page, &["Open the whole message"]);
    assert!(!page.body.contains("END"));
    let at = page
        .body
        .find("/conversations/talk?user=ann&amp;message=")
        .unwrap();
    let path = page.body[at..]
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    shows(&browser.get(&path), &["END"]);
}

/// The table of conversations is sorted by its columns, and each heading links to the other direction.
#[test]
fn the_list_of_conversations_sorts_on_the_server() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for (session, count) in [("walk", 1), ("talk", 2), ("plan", 1)] {
        for _ in 0..count {
            let said = json!({"content": "hello", "user": "ann"});
            let path = format!("/v1/conversations/{session}/messages");
            assert_eq!(server.post(&path, &said).status, 200);
        }
    }
    let browser = Browser::new(&server);
    let order = |path: &str| {
        let page = browser.get(path);
        let places = ["walk", "talk", "plan"].map(|name| {
            let link = format!("/conversations/{name}?user=ann");
            (page.body.find(&link).unwrap(), name)
        });
        let mut places = places.to_vec();
        places.sort_unstable();
        places.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    let cases = [
        ("", ["plan", "talk", "walk"]),
        ("?sort=last", ["plan", "talk", "walk"]),
        ("?sort=-last", ["walk", "talk", "plan"]),
        ("?sort=messages", ["talk", "plan", "walk"]),
        ("?sort=session", ["plan", "talk", "walk"]),
        ("?sort=-session", ["walk", "talk", "plan"]),
        ("?sort=%3Cb%3E", ["plan", "talk", "walk"]),
    ];
    for (query, expected) in cases {
        assert_eq!(
            order(&format!("/conversations{query}")),
            expected,
            "{query}"
        );
    }
    let page = browser.get("/conversations?sort=last");
    shows(
        &page,
        &["aria-sort=\"descending\"", "?sort=-last", "?sort=messages"],
    );
}

/// A conversation shows a part of what was said and of the window, with links to the rest.
#[test]
fn a_long_conversation_is_shown_in_parts() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for n in 0..90 {
        let said = json!({"content": format!("word{n:03}"), "user": "ann"});
        let sent = server.post("/v1/conversations/talk/messages", &said);
        assert_eq!(sent.status, 200);
    }
    let browser = Browser::new(&server);
    let link = |page: &str, words: &str| {
        let (before, _) = page.split_once(&format!(">{words}<")).unwrap();
        let (_, path) = before.rsplit_once("href=\"").unwrap();
        path.trim_end_matches('"').replace("&amp;", "&")
    };
    let count = |page: &str, word: &str| page.matches(word).count();
    let newest = browser.get("/conversations/talk?user=ann").body;
    assert_eq!(
        (count(&newest, "word089"), count(&newest, "word000")),
        (2, 0)
    );
    assert!(!newest.contains("Later in the window") && !newest.contains("Newest messages"));
    shows(&browser.get("/conversations/talk?user=ann"), &[">90<"]);
    let mut path = link(&newest, "Earlier in the window");
    let mut page = browser.get(&path).body;
    while page.contains("Earlier in the window") {
        path = link(&page, "Earlier in the window");
        page = browser.get(&path).body;
    }
    // The first column still shows the newest messages.
    assert_eq!((count(&page, "word089"), count(&page, "word000")), (1, 1));
    let earlier = browser.get(&link(&page, "Earlier messages")).body;
    assert_eq!(
        (count(&earlier, "word089"), count(&earlier, "word000")),
        (0, 1)
    );
    let back = browser.get(&link(&earlier, "Newest messages")).body;
    assert_eq!((count(&back, "word089"), count(&back, "word000")), (1, 1));
    let later = browser.get(&link(&back, "Later in the window")).body;
    assert_eq!(count(&later, "word000"), 0);
}

#[test]
fn the_overview_shows_growth_tiers_and_percentiles_and_reads_little_while_nothing_changes() {
    let sandbox = Sandbox::new();
    sandbox.run(&["add", "--id", "n1", "Ann prefers tea"]).ok();
    let server = Server::start(&sandbox, &[]);
    let browser = Browser::new(&server);
    let page = browser.get("/");
    shows(&page, &["Growth", "By tier", "p99", "data-seq=\"1\""]);
    assert_eq!(browser.get("/?part=recent&after=1").status, 204);
    shows(&browser.get("/?part=recent&after=0"), &["Ann prefers tea"]);
}
