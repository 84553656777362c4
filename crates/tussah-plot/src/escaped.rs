//! Text in SVG and HTML.

use std::fmt::{self, Write as _};

/// A string that is displayed with escapes, for an element or for an attribute in quotes.
///
/// Characters that XML forbids (XML 1.0, section 2.2) are left out.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            '\'' => out.write_str("&#39;"),
            '\t' | '\n' | '\r' => out.write_char(c),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => Ok(()),
            _ => out.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_elements_and_attributes() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Escaped(text).to_string(), expected);
        };
        check("a<b> & \"c\"'", "a&lt;b&gt; &amp; &quot;c&quot;&#39;");
        check("a\tb\r\nö\u{7f}\u{85}", "a\tb\r\nö\u{7f}\u{85}");
        check("a\0\u{b}\u{1b}\u{fffe}\u{ffff}b", "ab");
    }
}
