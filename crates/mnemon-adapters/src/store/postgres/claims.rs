//! Jobs of a tenant that one process at a time does. The clock is that of the database server, so
//! clocks of servers that are off do no harm.

use mnemon_core::{Claim, Claimed, Grant, Right, StoreError};

use super::errors::Failure;
use super::pool::{Call, Lease};

/// Claims the job if nobody has it, or extends the claim. A row that is locked is being claimed by
/// another process at this moment.
pub(super) async fn claim(
    lease: &mut Lease,
    grant: &Grant,
    claim: &Claim<'_>,
) -> Result<Claimed, Failure> {
    grant.require(Right::Write).map_err(StoreError::from)?;
    let sql = "WITH added AS (
            INSERT INTO mnemon.claims (tenant, job, holder, ends)
            VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
            ON CONFLICT DO NOTHING RETURNING 1
        ), free AS (
            SELECT tenant, job FROM mnemon.claims
            WHERE tenant = $1 AND job = $2 AND (holder = $3 OR ends <= clock_timestamp())
            FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE mnemon.claims c
            SET holder = $3, ends = clock_timestamp() + $4 * interval '1 millisecond'
            FROM free WHERE c.tenant = free.tenant AND c.job = free.job RETURNING 1
        )
        SELECT 1 FROM added UNION ALL SELECT 1 FROM taken";
    let lasts_ms = u32::try_from(claim.lasts.as_millis()).unwrap_or(u32::MAX);
    let call = Call::about(grant.tenant(), sql)
        .with(claim.job.to_owned())
        .with(claim.holder.to_owned())
        .with(f64::from(lasts_ms));
    Ok(match lease.all(call).await?.is_empty() {
        true => Claimed::Others,
        false => Claimed::Ours,
    })
}
