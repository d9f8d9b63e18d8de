//! `mnemon top`

mod reading;

use std::time::{Duration, Instant};

use serde_json::json;

use self::reading::{Reading, View};
use super::door::{Door, key};
use super::out::table_lines;
use super::remote::Remote;
use super::text;
use mnemon_operations::Error;

/// The address that `mnemon serve` listens on by default.
const LOCAL: &str = "http://127.0.0.1:8750";
/// Rows of a table in the live view.
const ROWS: usize = 12;

/// Watch a server: requests, latencies, errors, records, queues and memory
///
/// The view is drawn every second until Ctrl-C. Rates and latencies are those of the last
/// second; with --once, and where the output is not a terminal, those since the start of the server.
/// The key needs the right `admin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon top\n  \
    mnemon top --once\n  \
    mnemon top --ready || systemctl restart mnemon\n  \
    mnemon top --server https://memory.example.org --json | jq .requests_per_second\n\n\
    Without --server it watches http://127.0.0.1:8750.")]
pub(super) struct Args {
    /// Print one reading and exit
    #[arg(long)]
    once: bool,
    /// Check that the server is ready, and print nothing else; needs no key
    #[arg(long, conflicts_with = "once")]
    ready: bool,
    /// Seconds between two readings
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let server = match door.remote.take() {
        Some(server) => server,
        None => {
            let ca = door.config.server_ca.as_deref();
            Remote::new(LOCAL, key(&door.config)?, ca)?
        }
    };
    if args.ready {
        server.text("/readyz").await?;
        return_json!(door, &json!({"server": server.url(), "ready": true}));
        return door.out.line("ready");
    }
    let (first, ready) = read(&server).await?;
    if args.once || door.out.json || !door.out.is_terminal() {
        let view = first.view(None, server.url(), ready);
        return_json!(door, &view);
        return lines(&view, usize::MAX)
            .iter()
            .try_for_each(|line| door.out.line(line));
    }
    tokio::select! {
        done = watch(&server, first, Duration::from_secs(args.every), door) => done,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The metrics of the server, and whether it is ready.
async fn read(server: &Remote) -> Result<(Reading, bool), Error> {
    let text = server.text("/metrics").await?;
    let ready = server.text("/readyz").await.is_ok();
    Ok((Reading::of(&text), ready))
}

/// Draws the view again and again. A server that cannot be reached is asked again.
async fn watch(
    server: &Remote,
    first: Reading,
    every: Duration,
    door: &mut Door,
) -> Result<(), Error> {
    let (mut before, mut taken) = (first, Instant::now());
    draw(&["waiting for the first second…".to_owned()], door)?;
    loop {
        tokio::time::sleep(every).await;
        match read(server).await {
            Ok((now, ready)) => {
                let seconds = taken.elapsed().as_secs_f64();
                let view = now.view(Some((&before, seconds)), server.url(), ready);
                (before, taken) = (now, Instant::now());
                draw(&lines(&view, ROWS), door)?;
            }
            Err(error) => draw(&[text::one_line(&error.to_string())], door)?,
        }
    }
}

fn draw(lines: &[String], door: &mut Door) -> Result<(), Error> {
    let screen = screen(lines, door.out.width);
    door.out.bytes(screen.as_bytes())?;
    door.out.flush()
}

/// Writes over the lines that are there, so that nothing flickers, and clears what is left of them.
fn screen(lines: &[String], width: usize) -> String {
    let lines = lines.iter();
    let lines = lines.map(|line| console::truncate_str(line, width, "…") + "\x1b[K\n");
    format!("\x1b[H{}\x1b[J", lines.collect::<String>())
}

/// The view for people, with at most so many rows in each table.
fn lines(view: &View, rows: usize) -> Vec<String> {
    let ready = match view.ready {
        true => "ready",
        false => "NOT READY",
    };
    let queues = view
        .queues
        .iter()
        .map(|(queue, depth)| format!("{queue} {depth}"));
    let queues: Vec<String> = queues.collect();
    let memory = view.memory_bytes.map_or("unknown".to_owned(), bytes);
    let mut lines = vec![
        format!(
            "{}  {ready}  up {} s",
            text::one_line(&view.server),
            view.uptime_seconds
        ),
        format!(
            "requests     {:.1}/s, {} refused, {} failed, {} running (over {} s)",
            view.requests_per_second, view.refused, view.failed, view.running, view.seconds
        ),
        format!(
            "connections  {} open, {} refused, {} listeners",
            view.connections, view.connections_refused, view.listeners
        ),
        format!(
            "memory       {memory}, of which {} index {} records",
            bytes(view.index_bytes),
            view.index_records
        ),
        format!("store        {}", bytes(view.store_bytes)),
        format!("queues       {}", queues.join(", ")),
    ];
    let ms = |ms: f64| format!("{ms:.2}");
    let routes = view.routes.iter().take(rows).map(|route| {
        vec![
            format!("{} {}", route.method, text::one_line(&route.route)),
            route.requests.to_string(),
            ms(route.p50_ms),
            ms(route.p99_ms),
            route.refused.to_string(),
            route.failed.to_string(),
        ]
    });
    let head = ["ROUTE", "REQUESTS", "P50 MS", "P99 MS", "REFUSED", "FAILED"];
    section(&mut lines, &head, routes.collect());
    let store = view.store.iter().take(rows).map(|call| {
        let (p50, p99) = (ms(call.p50_ms), ms(call.p99_ms));
        vec![call.operation.clone(), call.calls.to_string(), p50, p99]
    });
    section(
        &mut lines,
        &["STORE", "CALLS", "P50 MS", "P99 MS"],
        store.collect(),
    );
    let tenants = view.tenants.iter().take(rows);
    let tenants = tenants.map(|one| vec![text::one_line(&one.tenant), one.records.to_string()]);
    section(&mut lines, &["TENANT", "RECORDS"], tenants.collect());
    lines
}

fn section(lines: &mut Vec<String>, head: &[&str], rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        lines.push(String::new());
        lines.extend(table_lines(head, rows));
    }
}

/// A size in the unit that people would use.
fn bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, "B");
    for larger in units {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{size:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_columns_and_fit_the_screen() {
        let lines = ["a   b".to_owned(), "0123456789".to_owned()];
        let drawn = screen(&lines, 6);
        assert_eq!(drawn, "\x1b[Ha   b\x1b[K\n01234…\x1b[K\n\x1b[J");
    }

    #[test]
    fn sizes_have_the_unit_that_people_use() {
        let sizes = [0, 1023, 1024, 1_572_864, 5 << 40].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "5.0 TiB"]);
    }
}
