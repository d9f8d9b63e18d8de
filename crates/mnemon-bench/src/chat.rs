//! A conversation as it grows: appending must not cost more the longer it is, and its window must
//! stay small.

use std::time::{Duration, Instant};

use mnemon_core::window::Settings;
use mnemon_core::{Block, Ctx, Ids, Message, Owner, Role, Tenant, Time};
use mnemon_engine::{Content, Memory, Utterance, Window};
use serde_json::Map;

use crate::measure::{Outcome, Table, Times};

/// Messages that are timed at each size.
const TIMED: usize = 100;

pub(crate) fn run(sizes: &[usize]) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut table = Table::new(sizes);
    for size in sizes {
        runtime.block_on(measure(*size, &mut table))?;
    }
    table.print();
    Ok(())
}

async fn measure(size: usize, table: &mut Table) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("m.db").display());
    let memory = Memory::builder(mnemon_adapters::open(&url)?.backend, Ids::new(3)).build();
    let start = Time::from_millis(1_700_000_000_000)?;
    // A message each second, as in a conversation.
    let at = |number: usize| {
        let now = start.plus_millis(1000 * number as i64);
        Ctx::new(Tenant::default(), "bench", now)
    };
    let settings = Settings {
        max_token: 16_000,
        ..Settings::default()
    };
    let window = memory.window("ann", "long")?.settings(settings)?;
    for number in 0..size.saturating_sub(TIMED) {
        let ctx = at(number);
        window.add_message(&ctx, message(number)).await?;
        if number % 5 == 4 {
            window.compress_if_needed(&ctx).await?;
        }
    }
    let bob = Owner {
        user: Some("bob".to_owned()),
        session: Some("bare".to_owned()),
        ..Owner::default()
    };
    let mut times: [Vec<Duration>; 4] = Default::default();
    let mut largest = 0;
    for number in size.saturating_sub(TIMED)..size {
        let ctx = at(number);
        // The floor: the same message in another session, without a window.
        let Message { role, content, .. } = message(number);
        let said = Utterance {
            content: Content::Blocks(content),
            ..Utterance::text(role, "")
        };
        let dialog = memory.dialog();
        let bare = dialog.append_all(&ctx, &bob, vec![said], None);
        timed(&mut times[0], bare).await?;
        timed(&mut times[1], window.add_message(&ctx, message(number))).await?;
        timed(&mut times[2], window.compress_if_needed(&ctx)).await?;
        timed(&mut times[3], window.get_messages(&ctx)).await?;
        largest = largest.max(window.show(&ctx).await?.tokens);
    }
    let [bare, append, compress, get] = times.map(Times::from);
    table.add("append without a window p50, µs", bare.percentile(0.5));
    table.add("append p50, µs", append.percentile(0.5));
    table.add("append p99, µs", append.percentile(0.99));
    let beside = append.percentile(0.5) / bare.percentile(0.5);
    table.add("append / without a window", beside);
    table.add("compress if needed p50, µs", compress.percentile(0.5));
    table.add("compress if needed, slowest, µs", compress.percentile(1.0));
    table.add("read the window p50, µs", get.percentile(0.5));
    table.add("largest window, tokens (limit 16000)", largest as f64);
    table.add(
        "originals read back",
        read_back(&window, &at(size)).await? as f64,
    );
    table.add("peak memory of the process, MB", peak_mb());
    Ok(())
}

async fn timed<T, E>(
    times: &mut Vec<Duration>,
    call: impl Future<Output = Result<T, E>>,
) -> Result<(), E> {
    let start = Instant::now();
    call.await?;
    times.push(start.elapsed());
    Ok(())
}

async fn read_back(window: &Window<'_>, ctx: &Ctx) -> Outcome<usize> {
    let (mut count, mut after) = (0, None);
    loop {
        let (page, next) = window.original(ctx, after, 1000).await?;
        count += page.len();
        match next {
            Some(next) => after = Some(next),
            None => return Ok(count),
        }
    }
}

/// Rounds of ten: a question, four calls with their results, an answer.
fn message(number: usize) -> Message {
    let id = format!("m{number}");
    let text = format!(
        "Message {number}: we decided to look at file {} of the tea house, because it has {} lines.",
        number % 97,
        number % 1009
    );
    let with = |role, block| Message {
        content: vec![block],
        ..Message::text(id.clone(), role, "")
    };
    match number % 10 {
        0 => Message::text(id, Role::User, text),
        9 => Message::text(id, Role::Assistant, text),
        odd if odd % 2 == 1 => with(
            Role::Assistant,
            Block::ToolUse {
                id: format!("call_{number}"),
                name: "read_file".to_owned(),
                input: Map::new(),
                content: None,
                metadata: Map::new(),
            },
        ),
        _ => with(
            Role::Tool,
            Block::ToolResult {
                id: format!("call_{}", number - 1),
                name: "read_file".to_owned(),
                output: vec![Block::Text {
                    text: format!("{text} ").repeat(6),
                }],
                metadata: Map::new(),
            },
        ),
    }
}

/// The most memory that this process ever had, where the system says so.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}
