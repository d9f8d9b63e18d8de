//! `mnemon doctor`

use super::confirm::confirm;
use super::door::Door;
use super::shared::Shared;
use super::text;
use mnemon_operations::config::Config;
use mnemon_operations::operation::Doctor;
use mnemon_operations::wiring::Examination;
use mnemon_operations::{Error, api};

/// Check the store for damage and repair it if asked
///
/// Checks structure, checksums, counts, format version, permissions and free space without opening
/// the store for use. A repair shows its steps before it makes them, and checks again afterwards.
/// From a damaged SQLite file it copies every record that can still be read into a new file, and
/// keeps the damaged one as FILE.bad. Exits with 9 if damage is found; a warning (little space,
/// harmless leftovers, lines that a repair set aside) does not change the exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon doctor\n  \
    mnemon doctor --store sqlite:notes.db --repair")]
pub(super) struct Args {
    #[command(flatten)]
    examine: Shared<Doctor, Config>,
    /// Make the proposed repairs
    #[arg(long)]
    repair: bool,
    /// Show the steps of a repair, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    if args.repair {
        // It replaces the files of the store.
        door.local_option("--repair")?;
    }
    let mut found = args.examine.call_on(&door.config, door).await?;
    let proposals = proposals(&found.examination);
    if args.repair && !args.dry_run && !proposals.is_empty() {
        if !door.out.json {
            show(&found.examination, door)?;
            door.out.line("")?;
            door.out.line("A repair would:")?;
            for proposal in &proposals {
                say!(door, "  - {proposal}")?;
            }
            door.out.flush()?;
        }
        let question = format!("This changes {}.", found.examination.place);
        confirm(&question, args.yes)?;
        found = api::doctor::run(&door.config, true).map_err(not_repaired)?;
        if !door.out.json {
            for done in &found.repaired {
                say!(door, "done: {}", text::one_line(done))?;
            }
            door.out.line("")?;
        }
    }
    finish(&found, !args.repair, door)
}

fn not_repaired(error: Error) -> Error {
    match error {
        Error::Store(error) => Error::NotRepaired(error),
        other => other,
    }
}

/// `may_repair` says that no repair was tried.
fn finish(found: &api::doctor::Response, may_repair: bool, door: &mut Door) -> Result<(), Error> {
    if door.out.json {
        door.out.json(found)?;
    } else {
        show(&found.examination, door)?;
    }
    if found.clean {
        return Ok(());
    }
    let findings = &found.examination.findings;
    Err(Error::Unwell {
        place: found.examination.place.clone(),
        found: findings.iter().filter(|finding| !finding.ok).count(),
        checks: findings.len(),
        mendable: may_repair && findings.iter().any(|finding| finding.repair.is_some()),
    })
}

fn proposals(examination: &Examination) -> Vec<String> {
    let findings = examination.findings.iter();
    findings
        .filter_map(|finding| finding.repair.as_deref().map(text::one_line))
        .collect()
}

fn show(examination: &Examination, door: &mut Door) -> Result<(), Error> {
    door.out.line(text::one_line(&examination.place))?;
    let rows = examination.findings.iter().map(|finding| {
        let state = finding.state();
        let detail = match &finding.repair {
            Some(repair) => format!("{} (repair: {repair})", finding.detail),
            None => finding.detail.clone(),
        };
        let cells = [&*finding.check, state].map(str::to_owned).to_vec();
        [cells, vec![text::one_line(&detail)]].concat()
    });
    door.out.table(&["CHECK", "STATE", "SEEN"], rows.collect())
}
