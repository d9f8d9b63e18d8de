//! Building an index anew while searches use the old one.

use mnemon_core::{Ctx, Policy, Right, StoreError};

use super::{ExternalIndex, ServerError, unavailable};

/// Documents that are written before the progress is shown again.
const SLICE: usize = 1000;

/// Is called with how many records were written, and how many there are.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// What a rebuild did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rebuilt {
    pub tenants: usize,
    pub records: u64,
}

impl ExternalIndex {
    /// Fills a new generation with the records of all tenants, has searches use it, and deletes the
    /// old one. Commits that arrive meanwhile are followed by the next search. A rebuild that is
    /// killed leaves the old generation in use.
    pub async fn rebuild(&self, ctx: &Ctx, watch: Watch<'_>) -> Result<Rebuilt, StoreError> {
        let policy = Policy::default();
        let all = policy.check_system(ctx, Right::Purge)?;
        let tenants = self.store.tenants(&all).await?;
        let mut grants = Vec::new();
        let mut total = 0;
        for tenant in tenants.into_iter().filter(|tenant| !tenant.is_system()) {
            let ctx = Ctx {
                tenant,
                ..ctx.clone()
            };
            let grant = policy.check(&ctx, Right::Read)?;
            total += self.store.tally(&grant).await?.records();
            grants.push(grant);
        }
        let fill = async {
            let generation = self.server.create().await?;
            let mut written = 0;
            for grant in &grants {
                loop {
                    let followed = self.follow(&generation, grant, SLICE).await?;
                    written += followed.written as u64;
                    watch(written.min(total), total);
                    if followed.behind == 0 {
                        break;
                    }
                }
            }
            self.server.activate(&generation).await?;
            Ok(())
        };
        match fill.await {
            Ok(()) => {}
            Err(ServerError::Store(error)) => return Err(error),
            Err(ServerError::Gone) => {
                let what = "another rebuild ended first and has replaced this one";
                return Err(unavailable(self.place(), what, "rebuilt"));
            }
        }
        *self.generation.lock().await = None;
        Ok(Rebuilt {
            tenants: grants.len(),
            records: total,
        })
    }
}
