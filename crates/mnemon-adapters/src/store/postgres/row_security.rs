//! Row-level security: the database itself shows a connection only rows of the tenant that it has
//! named, so that a statement without its condition on the tenant shows nothing of other tenants.
//!
//! It is off unless the URL switches it on, because of its cost and because `pg_dump` then needs a
//! user that bypasses it. The state belongs to the database: all servers find it there.

use mnemon_core::StoreError;

use super::errors::Failure;
use super::pool::{Call, Lease};
use crate::store::unavailable;

/// What the tables say about row-level security.
pub(super) struct RowSecurity {
    pub(super) is_on: bool,
    /// Whether it applies to our user: not to superusers.
    pub(super) is_active: bool,
}

impl RowSecurity {
    /// Both are false before our tables were made.
    pub(super) async fn of(lease: &mut Lease) -> Result<Self, Failure> {
        let sql = "SELECT c.relforcerowsecurity, row_security_active(c.oid) FROM pg_class c
             JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'mnemon' AND c.relname = 'records'";
        let rows = lease.all(Call::new(sql)).await?;
        let Some(row) = rows.first() else {
            return Ok(Self {
                is_on: false,
                is_active: false,
            });
        };
        Ok(Self {
            is_on: row.try_get(0)?,
            is_active: row.try_get(1)?,
        })
    }
}

/// Switches it on or off for all tables of tenants. It applies to the owner of the tables, too.
pub(super) async fn switch(lease: &mut Lease, on: bool) -> Result<(), Failure> {
    let action = match on {
        true => "ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        false => "DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY",
    };
    // A missing setting is an error, and not a database that looks empty.
    lease
        .batch(&format!(
            "DO $do$
             DECLARE
                own CONSTANT text := $$current_setting('mnemon.tenant')$$;
                number CONSTANT text :=
                    '(SELECT num FROM mnemon.tenants WHERE name = ' || own || ')';
                found record;
             BEGIN
                -- Writers lock this table first.
                LOCK TABLE mnemon.tenants;
                FOR found IN
                    SELECT c.oid::regclass AS name, a.attname,
                        a.atttypid = 'bigint'::regtype AS is_number
                    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                    WHERE c.relnamespace = 'mnemon'::regnamespace AND c.relkind IN ('r', 'p')
                        AND (a.attname = 'tenant'
                            OR (c.relname = 'tenants' AND a.attname = 'name'))
                LOOP
                    EXECUTE format('DROP POLICY IF EXISTS own_tenant ON %s', found.name);
                    EXECUTE format('CREATE POLICY own_tenant ON %s USING (%I = %s)', found.name,
                        found.attname, CASE WHEN found.is_number THEN number ELSE own END);
                    EXECUTE format('ALTER TABLE %s {action}', found.name);
                END LOOP;
             END $do$"
        ))
        .await
}

pub(super) fn bypassed(place: &str) -> Failure {
    let what = "row-level security cannot be switched on by a superuser or a user with BYPASSRLS, \
                to whom it does not apply; use another user, who owns the tables";
    let error: StoreError = unavailable(place, what, "row_security=on");
    error.into()
}
