//! Speakers by the first word of their names.

use mnemon_core::{Filter, Grant, limits};

use super::audience_name;
use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::Lease;
use crate::store::postgres::reads::{OWN, add_conditions, call};
use crate::store::postgres::view::count;

/// Names with one first word that are looked at; a tenant may have more than a viewer may see.
const NAMES: usize = 1000;

/// Speakers of live records of this audience whose first word is among these.
pub(in crate::store::postgres) async fn speakers(
    lease: &mut Lease,
    grant: &Grant,
    audience: &Filter,
    words: &[String],
) -> Result<Vec<String>, Failure> {
    let words = words.iter().filter(|word| !word.contains('\0'));
    let words: Vec<String> = words.cloned().collect();
    let mut inner = call(grant, "")?.with(words);
    add_conditions(&mut inner, grant, &audience.audience_only());
    if let Some(audiences) = audience.viewer.audiences() {
        let names = audiences.iter().map(audience_name);
        let names: Vec<String> = names.chain([String::new()]).collect();
        inner.and("s.audience = ANY(?)", names);
    }
    let limit = inner.next();
    let inner = inner.with(count(limits::SPEAKERS));
    // Each name is found by one step through the index, however many records it has.
    let next = format!(
        "SELECT s.speaker FROM mnemon.search s
         WHERE s.tenant = {OWN} AND s.named = w.word AND s.speaker IS NOT NULL"
    );
    let select = inner.wrap(|conditions| {
        format!(
            "SELECT DISTINCT n.speaker FROM unnest($2::text[]) AS w(word), LATERAL (
                WITH RECURSIVE k(speaker) AS (
                    ({next} ORDER BY s.speaker LIMIT 1)
                    UNION ALL
                    SELECT ({next} AND s.speaker > k.speaker ORDER BY s.speaker LIMIT 1)
                    FROM k WHERE k.speaker IS NOT NULL
                )
                SELECT k.speaker FROM k WHERE k.speaker IS NOT NULL LIMIT {NAMES}) n
             WHERE EXISTS (SELECT 1 FROM mnemon.search s
                JOIN mnemon.records r ON r.tenant = s.tenant AND r.seq = s.seq
                WHERE s.tenant = {OWN} AND s.named = w.word AND s.speaker = n.speaker
                    AND {conditions})
             ORDER BY 1 LIMIT ${limit}"
        )
    });
    let rows = lease.all(select).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
