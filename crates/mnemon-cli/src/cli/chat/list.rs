//! `mnemon chat list`

use super::super::door::Door;
use super::super::text;
use crate::Error;
use crate::api::chat::{ListRequest, Listed, list as conversations};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListArgs {
    /// List the conversations of this user only
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Conversations on a page, up to 1000
    #[arg(long, value_name = "N", default_value_t = ListRequest::LIMIT)]
    limit: usize,
    /// Leave out this many, to get the next page
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
}

pub(super) async fn list(args: ListArgs, door: &mut Door) -> Result<(), Error> {
    let request = ListRequest {
        user: args.user,
        limit: args.limit,
        skip: args.skip,
    };
    let page = conversations(&*door.memory()?, &door.ctx()?, &request).await?;
    return_json!(door, &page);
    if page.conversations.is_empty() && request.skip > 0 {
        let skip = request.skip;
        return say!(door, "no conversation comes after the first {skip}");
    }
    if page.conversations.is_empty() {
        return door.out.line("there are no conversations");
    }
    let rows = page.conversations.iter().map(row);
    let header = ["USER", "SESSION", "MESSAGES", "LAST", "SNAPSHOTS"];
    door.out.table(&header, rows.collect())?;
    door.out.next_page("--skip", page.next)
}

fn row(listed: &Listed) -> Vec<String> {
    let conversation = &listed.conversation;
    let session = match &conversation.project {
        Some(project) => format!("{} ({project})", conversation.session),
        None => conversation.session.clone(),
    };
    let labels = listed
        .snapshots
        .iter()
        .map(|snapshot| snapshot.label.as_str());
    let labels: Vec<&str> = labels.collect();
    vec![
        text::cut(&conversation.user, 30),
        text::cut(&session, 60),
        conversation.messages.to_string(),
        text::local(conversation.last),
        text::cut(&labels.join(", "), 60),
    ]
}
