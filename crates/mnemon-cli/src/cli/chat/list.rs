//! `mnemon chat list`

use super::super::door::Door;
use super::super::shared::{Shared, call};
use super::super::text;
use mnemon_operations::Error;
use mnemon_operations::api::chat::Listed;
use mnemon_operations::operation::ChatList;

pub(super) async fn list(args: Shared<ChatList>, door: &mut Door) -> Result<(), Error> {
    let given = args.arguments()?;
    let skip = given.whole("skip").unwrap_or(0);
    let page = call::<ChatList>(given, door).await?;
    return_json!(door, &page);
    if page.conversations.is_empty() && skip > 0 {
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
