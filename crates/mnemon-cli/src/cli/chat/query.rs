//! `mnemon chat query`

use std::path::PathBuf;
use std::sync::Arc;

use mnemon_core::Viewer;
use serde_json::json;

use super::super::door::Door;
use super::super::text;
use crate::{Error, api, wiring};

#[derive(Debug, clap::Args)]
pub(super) struct QueryArgs {
    /// Query
    #[arg(value_name = "TEXT", required = true)]
    query: Vec<String>,
    /// Search records that this user may see; without it, those of every user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Maximum number of passages
    #[arg(long, value_name = "N", default_value_t = api::query::LIMIT)]
    limit: usize,
    /// Search the pages of this project, too: ROOT/.airsspec/knowledge/library. Conversations of
    /// other projects are left out
    #[arg(long, value_name = "ROOT")]
    files: Option<PathBuf>,
}

pub(super) async fn query(args: QueryArgs, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (Arc::new(door.memory()?), door.ctx()?);
    let pages = match &args.files {
        Some(root) => Some(wiring::pages(&door.config, &ctx, &memory, root).await?),
        None => None,
    };
    let request = api::query::Request {
        viewer: Viewer::of_caller(args.user, None),
        text: args.query.join(" "),
        limit: args.limit,
        project: args
            .files
            .as_deref()
            .map(|root| wiring::project_name(&door.config, root)),
    };
    let found = api::query::run(&memory, &ctx, &request, pages.as_deref()).await?;
    return_json!(door, &json!({ "passages": found }));
    if found.is_empty() {
        return door.out.line("nothing found");
    }
    for passage in &found {
        let source = text::one_line(&passage.source);
        door.out
            .line(format!("{source}  {}", text::local(passage.created)))?;
        for line in passage.text.lines() {
            door.out.line(format!("  {}", text::clean(line)))?;
        }
    }
    Ok(())
}
