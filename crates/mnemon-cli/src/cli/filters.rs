//! Options that several commands share: whose, and which.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::rank::Recipe;
use mnemon_core::{Filter, Invalid, Kind, Namespace, Owner, Scope, Time, Viewer};

use super::when;

/// Whose a record is.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct OwnerArgs {
    /// User it is about or from
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// Agent it belongs to
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,
    /// Session it belongs to
    #[arg(long, value_name = "NAME")]
    pub(super) session: Option<String>,
    /// Flow it belongs to
    #[arg(long, value_name = "NAME")]
    pub(super) flow: Option<String>,
    /// Node of the flow
    #[arg(long, value_name = "NAME")]
    pub(super) node: Option<String>,
}

impl From<OwnerArgs> for Owner {
    fn from(args: OwnerArgs) -> Self {
        Self {
            user: args.user,
            agent: args.agent,
            session: args.session,
            flow: args.flow,
            node: args.node,
        }
    }
}

/// Which records are meant. Repeat an option to allow several values.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which records")]
pub(super) struct FilterArgs {
    #[command(flatten)]
    owner: OwnerArgs,
    /// Scope of the records
    #[arg(long, value_parser = scope())]
    scope: Vec<Scope>,
    /// Kind of the records
    #[arg(long, value_parser = kind(), hide_possible_values = true)]
    kind: Vec<Kind>,
    /// Namespace: short-term or long-term
    #[arg(long, value_parser = namespace())]
    namespace: Vec<Namespace>,
    /// Records with at least one of these tags
    #[arg(long)]
    tag: Vec<String>,
    /// Source of the records
    #[arg(long)]
    source: Option<String>,
    /// Created at or after: 2026-01-31, "2026-01-31 12:00", RFC 3339, or 7d (ago)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Created before
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Condition on the metadata: {"lang":"vi","n":{"$gte":3}}, with AND, OR and NOT
    #[arg(long = "filter", value_name = "JSON")]
    metadata: Option<String>,
}

impl FilterArgs {
    pub(super) fn into_filter(self, now: Time) -> Result<Filter, Invalid> {
        let since = self.since.map(|text| when::past("since", &text, now));
        let until = self.until.map(|text| when::past("until", &text, now));
        let owner: Owner = self.owner.into();
        // Whoever names a user reads as that user, at the agent that is named.
        let viewer = Viewer::of_caller(owner.user.clone(), owner.agent.clone());
        Ok(Filter {
            owner,
            scopes: self.scope,
            kinds: self.kind,
            namespaces: self.namespace,
            tags: self.tag,
            source: self.source,
            since: since.transpose()?,
            until: until.transpose()?,
            metadata: self.metadata.map(|text| text.parse()).transpose()?,
            ..Filter::seen_by(viewer)
        })
    }
}

macro_rules! word_parser {
    ($name:ident, $type:ty) => {
        /// One of the known words; the parser lists them and suggests the nearest.
        pub(super) fn $name() -> impl TypedValueParser<Value = $type> {
            PossibleValuesParser::new(<$type>::ALL.iter().map(|word| word.as_str()))
                .try_map(|word| word.parse::<$type>())
        }
    };
}

word_parser!(scope, Scope);
word_parser!(kind, Kind);
word_parser!(namespace, Namespace);
word_parser!(recipe, Recipe);
