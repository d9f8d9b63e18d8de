//! `mnemon chat fork|snapshot|restore|clear`

use super::super::door::Door;
use super::super::shared::Shared;
use super::super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::{ChatClear, ChatFork, ChatRestore, ChatSnapshot, Snapshot};

pub(super) async fn fork(args: Shared<ChatFork>, door: &mut Door) -> Result<(), Error> {
    let forked = args.call(door).await?;
    return_json!(door, &forked);
    let count = text::count(forked.messages as u64, "message");
    let to = text::one_line(&forked.session);
    say!(door, "forked: {to} with {count}")
}

pub(super) async fn snapshot(args: Shared<ChatSnapshot>, door: &mut Door) -> Result<(), Error> {
    say("saved", &args.call(door).await?, door)
}

pub(super) async fn restore(args: Shared<ChatRestore>, door: &mut Door) -> Result<(), Error> {
    say("restored", &args.call(door).await?, door)
}

fn say(word: &str, made: &Snapshot, door: &mut Door) -> Result<(), Error> {
    return_json!(door, made);
    let count = text::count(made.messages as u64, "message");
    let label = text::one_line(&made.snapshot);
    say!(door, "{word}: snapshot {label} with {count}")
}

pub(super) async fn clear(args: Shared<ChatClear>, door: &mut Door) -> Result<(), Error> {
    let cleared = args.call(door).await?;
    return_json!(door, &cleared);
    door.out.line("the window is empty; every message is kept")
}
