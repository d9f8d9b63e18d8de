//! The conditions of a search, for servers whose filters are expressions.

use super::Audience;

/// A condition on a field. A document is found if it fulfils all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The field has this text.
    Is(&'static str, String),
    /// The field has one of these texts, of which there is at least one.
    In(&'static str, Vec<String>),
    /// The list in the field has one of these texts, of which there is at least one.
    HasAny(&'static str, Vec<String>),
    AtLeast(&'static str, i64),
    Below(&'static str, i64),
}

impl Audience<'_> {
    /// The documents that are asked for. Metadata, sources, flows and nodes are not in these indexes.
    pub fn conditions(&self) -> Vec<Condition> {
        use Condition::{AtLeast, Below, HasAny, In, Is};
        let filter = self.filter;
        let mut all = vec![
            Is("tenant", self.tenant.to_string()),
            AtLeast("expires", self.now.millis()),
        ];
        let owner = &filter.owner;
        for (field, part) in [
            ("user", &owner.user),
            ("agent", &owner.agent),
            ("session", &owner.session),
        ] {
            all.extend(part.clone().map(|name| Is(field, name)));
        }
        if let Some(audiences) = filter.viewer.audiences() {
            let seen = audiences.iter().map(ToString::to_string);
            let seen = seen.chain(["everyone".to_owned()]);
            all.push(In("audience", seen.collect()));
        }
        let scopes = filter.scopes.iter().map(|it| it.as_str().to_owned());
        let kinds = filter.kinds.iter().map(|it| it.as_str().to_owned());
        let namespaces = filter.namespaces.iter().map(|it| it.as_str().to_owned());
        let tags = filter.tags.iter().map(|tag| tag.to_lowercase());
        all.extend([
            In("scope", scopes.collect()),
            In("kind", kinds.collect()),
            In("namespace", namespaces.collect()),
            HasAny("tags", tags.collect()),
        ]);
        all.extend(filter.since.map(|since| AtLeast("created", since.millis())));
        all.extend(filter.until.map(|until| Below("created", until.millis())));
        // An empty list means that the filter names none.
        all.retain(|it| !matches!(it, In(_, texts) | HasAny(_, texts) if texts.is_empty()));
        all
    }
}

#[cfg(test)]
mod tests {
    use mnemon_core::{Filter, Tenant, Time, Viewer};

    use super::Condition::{AtLeast, Below, HasAny, In, Is};
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_a_condition() {
        let tenant = Tenant::default();
        let now = Time::from_millis(5).unwrap();
        let conditions = |filter: &Filter| {
            let asked = Audience {
                tenant: &tenant,
                filter,
                now,
            };
            asked.conditions()
        };
        let always = [Is("tenant", tenant.to_string()), AtLeast("expires", 5)];
        assert_eq!(conditions(&Filter::all_of_tenant()), always);
        let mut filter = Filter::seen_by(Viewer::user("ann"));
        filter.owner.user = Some("ann".to_owned());
        filter.tags = vec!["Tea".to_owned()];
        filter.since = Some(Time::from_millis(1).unwrap());
        filter.until = Some(Time::from_millis(2).unwrap());
        let found = conditions(&filter);
        assert_eq!(found[..2], always);
        assert_eq!(found[2], Is("user", "ann".to_owned()));
        let In("audience", seen) = &found[3] else {
            panic!("{found:?}");
        };
        assert!(seen.contains(&"everyone".to_owned()));
        let rest = [
            HasAny("tags", vec!["tea".to_owned()]),
            AtLeast("created", 1),
            Below("created", 2),
        ];
        assert_eq!(found[4..], rest);
    }
}
