//! A file's tokens in a flat list, for rules that also apply inside macros.

use proc_macro2::{Delimiter, LineColumn, TokenStream, TokenTree};

/// A token and its line, from 1.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) line: usize,
    /// The position after its last character.
    pub(super) end: LineColumn,
    pub(super) text: String,
}

/// Flattens the groups; each delimiter becomes a separate token.
///
/// Comments are not included, and documentation is in string literals, so neither can match a rule.
pub(super) fn flatten(stream: TokenStream) -> Vec<Token> {
    let mut tokens = Vec::new();
    push(stream, &mut tokens);
    tokens
}

fn push(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let TokenTree::Group(group) = tree else {
            tokens.push(Token {
                line,
                end: tree.span().end(),
                text: tree.to_string(),
            });
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        tokens.push(Token {
            line,
            end: group.span_open().end(),
            text: open.into(),
        });
        push(group.stream(), tokens);
        let line = group.span_close().start().line;
        tokens.push(Token {
            line,
            end: group.span_close().end(),
            text: close.into(),
        });
    }
}

/// Returns whether the tokens begin with these texts.
pub(super) fn starts_with(tokens: &[Token], texts: &[&str]) -> bool {
    tokens.len() >= texts.len()
        && tokens
            .iter()
            .zip(texts)
            .all(|(token, text)| token.text == *text)
}

/// Returns the value of an expression that is a string literal.
pub(super) fn string(expression: &syn::Expr) -> Option<String> {
    match expression {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(literal),
            ..
        }) => Some(literal.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_flattened_and_lines_kept() {
        let tokens = flatten("a!(\n b\n)".parse().unwrap());
        let seen: Vec<_> = tokens
            .iter()
            .map(|token| (token.line, token.text.as_str()))
            .collect();
        assert_eq!(seen, [(1, "a"), (1, "!"), (1, "("), (2, "b"), (3, ")")]);
        assert!(starts_with(&tokens, &["a", "!"]));
        assert!(!starts_with(&tokens[4..], &[")", "a"]));
    }
}
