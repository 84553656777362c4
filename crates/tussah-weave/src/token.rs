//! Tokens, which the front ends for text and for macros produce.

use std::fmt;

/// A range of the input: byte offsets in source text, or indices of a macro's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Span {
    /// The index of the first byte or token.
    pub start: u32,
    /// The index after the last byte or token.
    pub end: u32,
}

impl Span {
    /// Creates a span.
    #[must_use]
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the span from the start of this span to the end of `last`.
    #[must_use]
    pub fn to(self, last: Self) -> Self {
        Self::new(self.start, last.end.max(self.start))
    }
}

/// A token with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind, with the token's content.
    pub kind: TokenKind,
    /// The position.
    pub span: Span,
}

/// The kinds of tokens. Keywords and units count as names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name: ASCII letters, digits and `_`.
    Name(String),
    /// A decimal number such as `10` or `0.5`, without its underscores.
    Number(String),
    /// A string, with its escape sequences decoded.
    Text(String),
    /// A documentation comment, without its slashes.
    Doc(String),
    /// A lifetime in a Rust type, such as `'static`.
    Lifetime(String),
    /// An operator or a delimiter.
    Punct(Punct),
}

impl fmt::Display for TokenKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(out, "`{name}`"),
            Self::Number(number) => write!(out, "`{number}`"),
            Self::Text(_) => out.write_str("a string"),
            Self::Doc(_) => out.write_str("a documentation comment"),
            Self::Lifetime(name) => write!(out, "`{name}`"),
            Self::Punct(punct) => write!(out, "`{punct}`"),
        }
    }
}

macro_rules! puncts {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Operators and delimiters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Punct {
            $($(#[$doc])* $name,)*
        }

        impl Punct {
            /// All operators and delimiters. If one begins with another, it comes first.
            pub(crate) const ALL: &[(&'static str, Punct)] = &[$(($text, Punct::$name),)*];

            /// Returns the spelling.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

puncts! {
    /// `->`
    Arrow = "->",
    /// `::`
    PathSep = "::",
    /// `<=`
    LessEqual = "<=",
    /// `>=`
    GreaterEqual = ">=",
    /// `==`
    Equal = "==",
    /// `!=`
    NotEqual = "!=",
    /// `&&`
    AndAnd = "&&",
    /// `||`
    OrOr = "||",
    /// `=`
    Assign = "=",
    /// `.`
    Dot = ".",
    /// `,`
    Comma = ",",
    /// `:`
    Colon = ":",
    /// `;`, in the Rust type of an array.
    Semicolon = ";",
    /// `(`
    ParenOpen = "(",
    /// `)`
    ParenClose = ")",
    /// `{`
    BraceOpen = "{",
    /// `}`
    BraceClose = "}",
    /// `[`, in a Rust type.
    BracketOpen = "[",
    /// `]`, in a Rust type.
    BracketClose = "]",
    /// `*`
    Star = "*",
    /// `/`
    Slash = "/",
    /// `+`
    Plus = "+",
    /// `-`
    Minus = "-",
    /// `<`
    Less = "<",
    /// `>`
    Greater = ">",
    /// `%`
    Percent = "%",
    /// `!`
    Not = "!",
    /// `&`, in a Rust type.
    And = "&",
}

impl fmt::Display for Punct {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
