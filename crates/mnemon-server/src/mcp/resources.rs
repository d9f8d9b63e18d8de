//! What a client can read without calling a tool: recent notes, the window of a session, an
//! agent's files. Each comes in pages that keep the tokens of an answer.

use mnemon_core::{Filter, Invalid, Kind, Record, Scan, Scope};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};

use super::answer::{
    RECALLED, TAIL_TOKENS, TOKENS, count, cut, discreet, excerpt, quote, quoted_message,
};
use super::served::Served;
use mnemon_operations::Error;
use mnemon_operations::api::{self, chat::Chat};

const MARKDOWN: &str = "text/markdown";
const RECENT: &str = "mnemon://notes/recent";
/// Resources in one page of the list.
const LISTED: usize = 100;
/// Sessions in the list; any other can be read by its name.
const SESSIONS: usize = 20;
/// Notes on one page.
const NOTES: usize = 10;

/// What a URI asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Recent,
    Window { user: String, session: String },
    AgentFile { agent: String, file: String },
}

/// A URI and the page of it that is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    wanted: Wanted,
    page: Option<String>,
}

impl Address {
    fn parse(uri: &str) -> Result<Self, Invalid> {
        let unknown = || {
            let what = format!(
                "`{}` is not a known resource; the resources are {RECENT}, \
                    mnemon://sessions/USER/SESSION/window and \
                 mnemon://agents/AGENT/FILE",
                discreet(uri, 200)
            );
            Invalid::new("uri", what)
        };
        let rest = uri.strip_prefix("mnemon://").ok_or_else(unknown)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let decoded = |part: &str| percent_decode_str(part).decode_utf8().map(Into::into);
        let parts: Result<Vec<String>, _> = path.split('/').map(decoded).collect();
        let parts = parts.map_err(|_| unknown())?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let wanted = match parts.as_slice() {
            ["notes", "recent"] => Wanted::Recent,
            ["sessions", user, session, "window"] => Wanted::Window {
                user: (*user).to_owned(),
                session: (*session).to_owned(),
            },
            ["agents", agent @ .., file] if !agent.is_empty() => Wanted::AgentFile {
                agent: agent.join("/"),
                file: (*file).to_owned(),
            },
            _ => return Err(unknown()),
        };
        let page = match query.split_once('=') {
            None if query.is_empty() => None,
            Some(("page", page)) => Some(decoded(page).map_err(|_| unknown())?),
            _ => return Err(unknown()),
        };
        Ok(Self { wanted, page })
    }

    fn number(&self) -> Result<usize, Invalid> {
        let Some(page) = &self.page else {
            return Ok(0);
        };
        let wrong = |_| Invalid::new("page", "is not a number that an earlier page named");
        page.parse().map_err(wrong)
    }
}

fn encoded(part: &str) -> String {
    utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()
}

fn window_uri(user: &str, session: &str) -> String {
    format!(
        "mnemon://sessions/{}/{}/window",
        encoded(user),
        encoded(session)
    )
}

fn agent_uri(agent: &str, file: &str) -> String {
    // The address is read by people; a member of a team has the name TEAM/MEMBER.
    format!(
        "mnemon://agents/{}/{file}",
        encoded(agent).replace("%2D", "-").replace("%2F", "/")
    )
}

/// The addresses that are made from names.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let templates = [
        (
            "mnemon://notes/recent{?page}",
            "recent-notes",
            "The newest notes, a page at a time",
        ),
        (
            "mnemon://sessions/{user}/{session}/window{?page}",
            "session-window",
            "The window of a conversation: recent messages and summaries of older ones",
        ),
        (
            "mnemon://agents/{agent}/{file}{?page}",
            "agent-file",
            "An agent's context.md, decisions.md or learnings.md",
        ),
    ];
    let templates = templates.map(|(uri, name, about)| {
        ResourceTemplate::new(uri, name)
            .with_description(about)
            .with_mime_type(MARKDOWN)
    });
    ListResourceTemplatesResult::with_all_items(templates.to_vec())
}

/// The resources there are, from this place of the list on.
pub(super) async fn list(
    served: &Served,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, Error> {
    let wrong = |_| Invalid::new("cursor", "is not one that an earlier page named");
    let from: usize = cursor.map_or(Ok(0), str::parse).map_err(wrong)?;
    let mut all = vec![
        Resource::new(RECENT, "recent-notes")
            .with_title("Recent notes")
            .with_description("The newest notes, a page at a time")
            .with_mime_type(MARKDOWN),
    ];
    for (user, session) in sessions(served).await? {
        let title = format!("Window of session {session} of {user}");
        all.push(
            Resource::new(window_uri(&user, &session), format!("window-{session}"))
                .with_title(title)
                .with_mime_type(MARKDOWN),
        );
    }
    let agents = served.agents.list().await?;
    let next = from.saturating_add(LISTED);
    for agent in &agents {
        // No more is looked at than it takes to know that there is more.
        if all.len() > next {
            break;
        }
        all.extend(files_of(served, &agent.name).await);
    }
    let more = all.len() > next;
    let page = all.into_iter().skip(from).take(LISTED).collect();
    let mut result = ListResourcesResult::with_all_items(page);
    result.next_cursor = more.then(|| next.to_string());
    Ok(result)
}

/// The files that the agent has by now.
async fn files_of(served: &Served, agent: &str) -> Vec<Resource> {
    let mut found = Vec::new();
    for file in api::agent::FILES {
        if api::agent::show(&served.agents, agent, file).await.is_ok() {
            let resource = Resource::new(agent_uri(agent, file), format!("{agent}-{file}"));
            found.push(resource.with_mime_type(MARKDOWN));
        }
    }
    found
}

/// The sessions in which something was said last.
async fn sessions(served: &Served) -> Result<Vec<(String, String)>, Error> {
    let filter = Filter {
        scopes: vec![Scope::Dialog],
        kinds: vec![Kind::Message],
        ..Filter::seen_by(served.viewer(None))
    };
    let records = served.memory.records();
    let listed = records
        .list(&served.ctx()?, &Scan::new(filter, 200))
        .await?;
    let mut found: Vec<(String, String)> = Vec::new();
    for record in listed.records {
        if let (Some(user), Some(session)) = (record.owner.user, record.owner.session) {
            let named = (user, session);
            if !found.contains(&named) && found.len() < SESSIONS {
                found.push(named);
            }
        }
    }
    Ok(found)
}

/// One page of a resource.
pub(super) async fn read(served: &Served, uri: &str) -> Result<ReadResourceResult, Error> {
    let address = Address::parse(uri)?;
    let text = match &address.wanted {
        Wanted::Recent => recent(served, address.page).await?,
        Wanted::Window { user, session } => window(served, user, session, &address).await?,
        Wanted::AgentFile { agent, file } => agent_file(served, agent, file, &address).await?,
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN);
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn recent(served: &Served, page: Option<String>) -> Result<String, Error> {
    let filter = Filter {
        kinds: vec![Kind::Note],
        ..Filter::seen_by(served.viewer(None))
    };
    let scan = Scan {
        after: page.map(|page| page.parse()).transpose()?,
        ..Scan::new(filter, NOTES)
    };
    let listed = served.memory.records().list(&served.ctx()?, &scan).await?;
    if listed.records.is_empty() {
        return Ok("There are no notes.\n".to_owned());
    }
    let next = match &listed.next {
        Some(next) => format!(
            "\nNext page: {RECENT}?page={}\n",
            encoded(&next.to_string())
        ),
        None => String::new(),
    };
    let mut text = String::new();
    // The notes are cut shorter until the page keeps its tokens.
    for chars in [600, 300, 150, 80, 40, 20] {
        let notes = listed.records.iter().map(|record| note(record, chars));
        text = format!("{RECALLED}\n{}{next}", notes.collect::<String>());
        if count(&text) <= TOKENS {
            break;
        }
    }
    Ok(text)
}

fn note(record: &Record, chars: usize) -> String {
    let said = record.summary.as_deref().unwrap_or(&record.content);
    let tags: Vec<String> = record
        .tags
        .iter()
        .take(5)
        .map(|tag| excerpt(tag, 30))
        .collect();
    format!(
        "\n[{}] {} {} {}\n{}",
        record.id,
        record.namespace,
        record.created,
        tags.join(" "),
        quote(&excerpt(said, chars))
    )
}

async fn window(
    served: &Served,
    user: &str,
    session: &str,
    address: &Address,
) -> Result<String, Error> {
    served.check_user(Some(user))?;
    let (owner, name) = (user.to_owned(), session.to_owned());
    let chat = Chat::new(&served.memory, &served.ctx()?, owner, name);
    let shown = chat.show().await?;
    if shown.messages.is_empty() {
        let what = format!("session {session} of {user} has no messages");
        return Err(mnemon_engine::Error::NotThere(what).into());
    }
    let mut text = format!("{RECALLED}\n");
    for seen in &shown.messages {
        text.push_str(&format!("\n{}", quoted_message(&seen.message)));
    }
    paged(&text, address, &window_uri(user, session))
}

async fn agent_file(
    served: &Served,
    agent: &str,
    file: &str,
    address: &Address,
) -> Result<String, Error> {
    let text = api::agent::show(&served.agents, agent, file).await?;
    paged(&text, address, &agent_uri(agent, file))
}

/// The text from the byte that the page names, as far as the tokens go, and the next page.
fn paged(text: &str, address: &Address, uri: &str) -> Result<String, Error> {
    let from = address.number()?;
    let Some(rest) = text
        .get(from..)
        .filter(|rest| !rest.is_empty() || from == 0)
    else {
        let what = "is after the last page; start again without a page";
        return Err(Invalid::new("page", what).into());
    };
    let (head, left) = cut(rest, TOKENS.saturating_sub(TAIL_TOKENS * 2));
    if left == 0 {
        return Ok(rest.to_owned());
    }
    let next = from + head.len();
    Ok(format!("{head}\n\nNext page: {uri}?page={next}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_names() {
        let uri = window_uri("ann/../b", "s 1?");
        let address = Address::parse(&uri).unwrap();
        let wanted = Wanted::Window {
            user: "ann/../b".to_owned(),
            session: "s 1?".to_owned(),
        };
        assert_eq!(address.wanted, wanted);
        let address = Address::parse("mnemon://agents/coder/context.md?page=12").unwrap();
        assert_eq!(address.number().unwrap(), 12);
        let uri = agent_uri("my-coder", "context.md");
        assert_eq!(uri, "mnemon://agents/my-coder/context.md");
    }

    #[test]
    fn what_is_no_address_is_told_the_known_ones() {
        for uri in [
            "file:///etc/passwd",
            "mnemon://",
            "mnemon://notes",
            "mnemon://notes/recent?x=1",
        ] {
            let said = Address::parse(uri).unwrap_err().to_string();
            assert!(said.contains("mnemon://agents/AGENT/FILE"), "{said}");
        }
    }

    #[test]
    fn pages_make_the_whole() {
        let text = "A line of words that goes on for a while.\n".repeat(900);
        let (mut page, mut whole, mut pages) = (None, String::new(), 0);
        loop {
            let address = Address {
                wanted: Wanted::Recent,
                page,
            };
            let shown = paged(&text, &address, "x").unwrap();
            assert!(count(&shown) <= TOKENS);
            pages += 1;
            let Some((head, next)) = shown.split_once("\n\nNext page: x?page=") else {
                whole.push_str(&shown);
                break;
            };
            whole.push_str(head);
            page = Some(next.trim().to_owned());
        }
        assert_eq!(whole, text);
        assert!(pages > 3);
        let address = Address {
            wanted: Wanted::Recent,
            page: Some("99999999".to_owned()),
        };
        assert!(paged(&text, &address, "x").is_err());
    }
}
