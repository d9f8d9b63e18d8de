//! `mnemon chat show`

use indicatif::ProgressBar;
use mnemon_core::Message;
use mnemon_core::format::Unseen;
use mnemon_engine::{Folded, Seen, SeenAs, Shown, Tier};

use super::super::door::Door;
use super::super::shared::{Shared, call, open};
use super::super::{progress, text};
use super::messages::line;
use mnemon_operations::Error;
use mnemon_operations::api::chat::{Format, RequestBody};
use mnemon_operations::operation::{ChatShow, ConversationWindow};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    conversation: Shared<ConversationWindow>,
    /// Print the request body for this provider, with --model or the configured model
    #[arg(long, value_enum, value_name = "PROVIDER")]
    format: Option<Format>,
}

pub(super) async fn show(args: ShowArgs, door: &mut Door) -> Result<(), Error> {
    let mut given = args.conversation.arguments()?;
    if let Some(format) = args.format {
        let model = given.take_text("model");
        let model = model.or(door.config.llm.model.value.clone());
        let messages: Vec<Message> = match &door.remote {
            Some(_) => {
                let shown = call::<ChatShow>(given, door).await?.messages.into_iter();
                shown.map(|seen| seen.message).collect()
            }
            None => {
                open::<ConversationWindow>(given, door)
                    .await?
                    .messages()
                    .await?
            }
        };
        let body = RequestBody::new(format, &messages, &[], model.as_deref());
        return print_body(&body, door);
    }
    if door.remote.is_some() {
        let shown = call::<ChatShow>(given, door).await?;
        return_json!(door, &shown);
        return draw(&shown, door);
    }
    let chat = open::<ConversationWindow>(given, door).await?;
    let shown = chat.show().await?;
    match door.out.json {
        true => door.out.json(&shown)?,
        false => draw(&shown, door)?,
    }
    door.out.flush()?;
    // The window is there at once; what is older of a long log is only needed for searches.
    let mut bar: Option<ProgressBar> = None;
    let mut most = 0;
    let mut tell = |left: u64| {
        most = most.max(left);
        let bar = bar.get_or_insert_with(|| progress::bar(&door.out, most, "bytes of the log"));
        bar.set_position(most - left);
    };
    chat.import_backlog(&mut tell).await
}

/// A body alone, so that it can be sent as it is; what it lacks is told on stderr.
pub(super) fn print_body(made: &RequestBody, door: &mut Door) -> Result<(), Error> {
    for unseen in &made.unseen {
        let Unseen {
            message,
            block,
            what,
        } = unseen;
        let what = format!("message {message}, block {block} is not in the body: {what}");
        door.out.note(&what);
    }
    if made.body.get("model").is_none() {
        door.out.note("the body names no model; pass --model NAME");
    }
    if door.out.json {
        return door.out.json_line(&made.body);
    }
    let json = serde_json::to_string_pretty(&made.body).map_err(Error::no_json)?;
    door.out.line(json)
}

/// Columns of the bar.
const BAR: usize = 50;

fn draw(shown: &Shown, door: &mut Door) -> Result<(), Error> {
    let (tokens, limit) = (shown.tokens, shown.token_limit);
    let messages = text::count(shown.messages.len() as u64, "message");
    let due = match shown.due {
        true => "; it is due to be compressed",
        false => "",
    };
    let max = shown.max_token;
    say!(
        door,
        "{messages}, {tokens} tokens; compressed from {limit} on, the model reads {max}{due}"
    )?;
    let kinds = [SeenAs::Summarised, SeenAs::Offloaded, SeenAs::Hot];
    let mut bar = String::new();
    for as_ in kinds {
        let columns = (shown.tier(as_).tokens * BAR).div_ceil(limit.max(tokens).max(1));
        bar.extend(std::iter::repeat_n(sign(as_).0, columns));
    }
    say!(door, "[{bar:<BAR$.BAR$}]")?;
    let rows = kinds.iter().map(|as_| {
        let Tier {
            messages,
            covers,
            tokens,
        } = shown.tier(*as_);
        let (sign, name) = sign(*as_);
        let stands_for = match *as_ {
            SeenAs::Hot => String::new(),
            _ => format!("for {covers}"),
        };
        vec![
            format!("{sign} {name}"),
            messages.to_string(),
            stands_for,
            format!("{tokens} tokens"),
        ]
    });
    door.out.table(&[], rows.collect())?;
    for (number, seen) in shown.messages.iter().enumerate() {
        let line = text::cut(&row(number, seen), door.out.width);
        door.out.line(line)?;
    }
    Ok(())
}

/// The sign of a message in the bar, and the word for it.
fn sign(as_: SeenAs) -> (char, &'static str) {
    match as_ {
        SeenAs::Hot => ('#', "hot"),
        SeenAs::Summarised => ('=', "summarised"),
        SeenAs::Offloaded => ('-', "offloaded"),
    }
}

fn row(number: usize, seen: &Seen) -> String {
    let (sign, _) = sign(seen.as_);
    let stands_for = match &seen.uuid {
        Some(uuid) => {
            let about = seen.folded.as_ref().map(about).unwrap_or_default();
            format!("[{} {uuid}{about}] ", text::count(seen.covers, "message"))
        }
        None => String::new(),
    };
    let (tokens, said) = (seen.tokens, line(&seen.message));
    format!("{sign} {number} {tokens}t {stands_for}{said}")
}

/// The period and the topics of messages that were folded.
fn about(folded: &Folded) -> String {
    let (from, to) = (text::local(folded.from), text::local(folded.to));
    let topics = match folded.topics.is_empty() {
        true => String::new(),
        false => format!(", about {}", folded.topics.join(", ")),
    };
    match from == to {
        true => format!(", {from}{topics}"),
        false => format!(", {from} to {to}{topics}"),
    }
}
