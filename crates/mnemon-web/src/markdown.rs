//! Markdown of agents' files as HTML. HTML in it is shown as text, and links lead only to the web.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::text;

/// Renders a text of at most [`text::WHOLE`] characters.
pub(crate) fn render(markdown: &str) -> Markup {
    let (markdown, _) = text::cut(markdown, text::WHOLE);
    let clean = text::clean(markdown);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(&clean, options).map(harmless);
    let mut rendered = String::new();
    html::push_html(&mut rendered, events);
    PreEscaped(rendered)
}

/// An event that makes only tags of ours. Images would be requests to other servers.
fn harmless(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            ..
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: harmless_link(dest_url),
            title: CowStr::Borrowed(""),
            id: CowStr::Borrowed(""),
        }),
        Event::Start(Tag::Image { .. }) => Event::Start(Tag::Emphasis),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Emphasis),
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: lower(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        event => event,
    }
}

/// Headings of a file stand below those of the page.
fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

fn harmless_link(to: CowStr<'_>) -> CowStr<'_> {
    let start = to.to_lowercase();
    match start.starts_with("https://") || start.starts_with("http://") {
        true => to,
        false => CowStr::Borrowed("#"),
    }
}
