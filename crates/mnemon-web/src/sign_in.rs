//! The page that asks for a key.

use maud::html;

use crate::shell::{outside, token_field};
use crate::{SIGN_IN, text};

/// The form. `to` is the page that the visitor wanted, `wrong` why the last try failed.
pub fn sign_in(to: &str, token: &str, wrong: Option<&str>) -> String {
    let content = html! {
        section.card.narrow {
            h1 { "Mnemon" }
            p { "This memory is protected by keys." }
            @if let Some(wrong) = wrong { p.wrong role="alert" { (text::clean(wrong)) } }
            form method="post" action=(SIGN_IN) {
                (token_field(token))
                input type="hidden" name="to" value=(text::clean(to));
                // For password managers, which store a key under a name; it is not sent.
                input type="text" autocomplete="username" value="mnemon" hidden;
                label.field {
                    span { "Key" }
                    input type="password" name="key" required autocomplete="current-password"
                        autofocus spellcheck="false" placeholder="mnemon_…";
                }
                button.primary type="submit" { "Sign in" }
            }
            p.quiet { "An administrator makes a key with " code { "mnemon key create NAME" }
                ". The page acts with the rights of the key." }
        }
    };
    outside("Sign in", &content).into_string()
}
