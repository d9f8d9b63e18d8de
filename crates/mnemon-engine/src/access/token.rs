//! From the claims of a verified token to a caller.

use mnemon_core::{Invalid, Owner, Tenant, check_line, limits};
use serde_json::{Map, Value};

use super::{Caller, Rights};

/// The names of the claims that say who the caller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    pub tenant: String,
    pub user: String,
    pub agent: String,
    pub rights: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self {
            tenant: "tenant".to_owned(),
            user: "sub".to_owned(),
            agent: "agent".to_owned(),
            rights: "rights".to_owned(),
        }
    }
}

impl ClaimNames {
    /// The caller. A token must name its tenant, which may not be the reserved one. Without the
    /// claim of rights it reads only; with `admin` it is bound to no user.
    pub fn caller(&self, claims: &Map<String, Value>) -> Result<Caller, Invalid> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let tenant = text(&self.tenant);
        let tenant = tenant.ok_or_else(|| Invalid::new(&self.tenant, "is not in the token"))?;
        let tenant: Tenant = tenant.parse()?;
        let rights = claims.get(&self.rights).and_then(rights);
        let rights = rights.unwrap_or(Rights::Read);
        let bound = |name: &str| {
            let name = text(name).filter(|_| rights < Rights::Admin);
            name.map(str::to_owned)
        };
        let owner = Owner {
            user: bound(&self.user),
            agent: bound(&self.agent),
            ..Owner::default()
        };
        owner.check()?;
        if owner.user.is_none() && rights < Rights::Admin {
            let what = "is not a text in the token, and only an administrator is bound to no user";
            return Err(Invalid::new(&self.user, what));
        }
        let subject = text("sub").unwrap_or("token");
        // It becomes a part of the actor in the history.
        check_line("sub", subject, limits::NAME_CHARS - "http:token:".len())?;
        Ok(Caller {
            tenant,
            user: owner.user,
            agent: owner.agent,
            rights,
            // No key has a name like this.
            name: format!("token:{subject}"),
        })
    }
}

/// The highest right that a text (`"read write"`) or a list names. Words like `mnemon:write`, as
/// scopes have them, count, too; other words do not.
fn rights(claim: &Value) -> Option<Rights> {
    let right = |word: &str| {
        let word = word.strip_prefix("mnemon:").unwrap_or(word);
        word.parse::<Rights>().ok()
    };
    match claim {
        Value::String(text) => text.split_whitespace().filter_map(right).max(),
        Value::Array(words) => words
            .iter()
            .filter_map(Value::as_str)
            .filter_map(right)
            .max(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn caller(claims: Value) -> Result<Caller, String> {
        let claims = claims.as_object().unwrap();
        let caller = ClaimNames::default().caller(claims);
        caller.map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn claims_say_who_calls() {
        let ann = caller(json!({"sub": "ann", "tenant": "acme", "rights": ["write", "x"]}));
        let ann = ann.unwrap();
        assert_eq!(
            (ann.tenant.as_str(), ann.name.as_str()),
            ("acme", "token:ann")
        );
        assert_eq!(
            (ann.user.as_deref(), ann.rights),
            (Some("ann"), Rights::Write)
        );
        let scoped = caller(json!({"sub": "a", "tenant": "t", "rights": "openid mnemon:read"}));
        assert_eq!(scoped.unwrap().rights, Rights::Read);
        let plain = caller(json!({"sub": "a", "tenant": "t"})).unwrap();
        assert_eq!(plain.rights, Rights::Read);
        let admin = caller(json!({"sub": "root", "tenant": "t", "rights": "admin"})).unwrap();
        assert_eq!((admin.user, admin.rights), (None, Rights::Admin));
    }

    #[test]
    fn a_token_names_a_tenant_that_callers_may_have() {
        for (claims, expected) in [
            (json!({"sub": "a"}), "tenant: is not in the token"),
            (
                json!({"sub": "a", "tenant": 7}),
                "tenant: is not in the token",
            ),
            (
                json!({"sub": "a", "tenant": "mnemon-system"}),
                "tenant: `mnemon-system` is reserved",
            ),
            (
                json!({"sub": "a", "tenant": "../x"}),
                "tenant: `../x` is not a tenant name",
            ),
            (json!({"sub": "a\nb", "tenant": "t"}), "user:"),
            (json!({"sub": "", "tenant": "t"}), "user: is empty"),
        ] {
            let error = caller(claims).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
