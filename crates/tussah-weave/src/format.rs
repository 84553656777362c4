//! The formatter, which breaks and indents lines, and keeps all comments.
//!
//! The formatter works on tokens. The parser determines where statements begin, so a line is a run
//! of tokens. The printed form of a line depends only on its tokens, which makes the formatter
//! idempotent.

use crate::diagnostic::Diagnostic;
use crate::lex::{Comment, Lexed, lex};
use crate::parse::{Layout, layout, parse};
use crate::token::{Punct, Token, TokenKind};

mod space;
mod wrap;

/// The columns of a line, without a comment at its end.
const WIDTH: usize = 100;
/// The columns of one level of indentation.
const INDENT: usize = 2;

/// Formats a file.
///
/// # Errors
///
/// Returns an error if the file cannot be parsed.
///
/// ```
/// let text = "graph A{b=C(x:1)\n  long=D\n\n\n  b->long // on\n}";
/// let expected = "graph A {\n  b    = C(x: 1)\n  long = D\n\n  b -> long // on\n}\n";
/// assert_eq!(tussah_weave::format(text).unwrap(), expected);
/// ```
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse(text);
    if !parsed.diagnostics.is_empty() {
        return Err(parsed.diagnostics);
    }
    let lexed = lex(text);
    let layout = layout(&lexed.tokens);
    let formatter = Formatter {
        text,
        lexed: &lexed,
        layout: &layout,
    };
    let mut lines = formatter.lines();
    align(&mut lines);
    Ok(print(&lines))
}

struct Formatter<'t> {
    text: &'t str,
    lexed: &'t Lexed,
    layout: &'t Layout,
}

/// The tokens of a line.
struct Run {
    tokens: std::ops::Range<usize>,
    depth: usize,
    /// True if a comma has to end the line.
    needs_comma: bool,
}

/// A line of the output.
struct Line {
    depth: usize,
    is_after_blank: bool,
    /// The text; with several lines if it is wrapped.
    text: String,
    /// The column of the `=` of an instance.
    assign: Option<usize>,
    is_comment: bool,
    /// The comments at the end.
    trailing: String,
}

impl<'t> Formatter<'t> {
    fn tokens(&self) -> &'t [Token] {
        &self.lexed.tokens
    }

    fn kind(&self, index: usize) -> Option<&'t TokenKind> {
        self.tokens().get(index).map(|token| &token.kind)
    }

    fn is_punct(&self, index: usize, punct: Punct) -> bool {
        self.kind(index) == Some(&TokenKind::Punct(punct))
    }

    fn source(&self, index: usize) -> &'t str {
        let span = self.tokens()[index].span;
        &self.text[span.start as usize..span.end as usize]
    }

    /// Splits the tokens into lines.
    fn runs(&self) -> Vec<Run> {
        let params = self.layout.params.iter();
        let mut exploded = params.filter(|range| self.is_exploded(range)).peekable();
        let count = self.tokens().len();
        let (mut runs, mut start, mut depth) = (Vec::new(), 0, 0_usize);
        let mut run_depth = 0;
        let mut cut = |start: &mut usize, end: usize, depth: usize, needs_comma: bool| {
            if *start < end {
                let tokens = *start..end;
                runs.push(Run {
                    tokens,
                    depth,
                    needs_comma,
                });
                *start = end;
            }
        };
        for index in 0..count {
            // The parameters of the graphs stand one after the other.
            while exploded.next_if(|range| *range.end() < index).is_some() {}
            let params = exploded.peek().filter(|range| range.contains(&index));
            let is_param = params.is_some() && self.layout.param_starts.contains(&index);
            let is_params_end = params.is_some_and(|range| *range.end() == index);
            let is_close = self.layout.closes.contains(&index);
            if is_param || is_params_end {
                let is_after_param = params.is_some_and(|range| start > *range.start());
                cut(&mut start, index, run_depth, is_after_param);
            } else if is_close || self.layout.starts.contains(&index) {
                cut(&mut start, index, run_depth, false);
            }
            depth -= usize::from(is_close);
            if start == index {
                run_depth = depth + usize::from(is_param || (params.is_some() && !is_params_end));
            }
            if self.layout.opens.contains(&index) {
                depth += 1;
                cut(&mut start, index + 1, run_depth, false);
            }
            let is_doc = matches!(self.kind(index), Some(TokenKind::Doc(_)));
            let is_else_next = self.kind(index + 1) == Some(&TokenKind::Name("else".into()));
            let is_params_start = params.is_some_and(|range| *range.start() == index);
            if is_doc || is_params_start || (is_close && !is_else_next) {
                cut(&mut start, index + 1, run_depth, false);
            }
        }
        cut(&mut start, count, run_depth, false);
        runs
    }

    /// Returns whether each parameter of a graph gets its own line.
    fn is_exploded(&self, range: &std::ops::RangeInclusive<usize>) -> bool {
        let has_doc = range
            .clone()
            .any(|index| matches!(self.kind(index), Some(TokenKind::Doc(_))));
        let (open, close) = (
            self.tokens()[*range.start()].span,
            self.tokens()[*range.end()].span,
        );
        let comments = &self.lexed.comments;
        let first = comments.partition_point(|comment| comment.span.start < open.start);
        let has_comment = comments
            .get(first)
            .is_some_and(|comment| comment.span.end <= close.end);
        // `graph Name(` and `) {` are around the parameters.
        let header = *range.start() - 2..*range.end() + 2;
        has_doc || has_comment || self.join(header, usize::MAX, 0).chars().count() > WIDTH
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut comments = self.lexed.comments.as_slice();
        // The end of what is printed so far.
        let mut end = 0;
        for run in self.runs() {
            let tokens = &self.tokens()[run.tokens.clone()];
            let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
                continue;
            };
            let (start, run_end) = (first.span.start as usize, last.span.end as usize);
            let is_closing = self.layout.closes.contains(&run.tokens.start)
                || self.is_punct(run.tokens.start, Punct::ParenClose);
            let lead = take(&mut comments, start);
            let depth = run.depth + usize::from(is_closing);
            self.comments(lead, depth, &mut end, &mut lines);
            let mut inner: Vec<&str> = take(&mut comments, run_end)
                .iter()
                .map(|comment| self.comment(comment))
                .collect();
            let next = self
                .tokens()
                .get(run.tokens.end)
                .map_or(self.text.len(), |token| token.span.start as usize);
            let until_newline = self.text[run_end..next]
                .find('\n')
                .map_or(next, |at| run_end + at);
            let mut trailing_end = run_end;
            while let Some(comment) = comments
                .first()
                .filter(|comment| (comment.span.start as usize) < until_newline)
            {
                let comment_end = comment.span.end as usize;
                inner.push(self.comment(comment));
                comments = &comments[1..];
                let is_last = self.text[trailing_end..comment_end].contains('\n');
                trailing_end = comment_end;
                if is_last {
                    break;
                }
            }
            let is_after_blank = self.is_blank_between(end, start);
            let is_doc = matches!(first.kind, TokenKind::Doc(_));
            let (hoisted, trailing) = split_inner(&inner, is_doc);
            let mut is_first = true;
            for text in hoisted {
                lines.push(Line {
                    depth,
                    is_after_blank: is_after_blank && std::mem::take(&mut is_first),
                    text: text.to_owned(),
                    assign: None,
                    is_comment: true,
                    trailing: String::new(),
                });
            }
            let mut line = self.line(&run);
            line.is_after_blank = is_after_blank && is_first;
            line.trailing = trailing;
            lines.push(line);
            end = trailing_end;
        }
        self.comments(comments, 0, &mut end, &mut lines);
        lines
    }

    fn comment(&self, comment: &Comment) -> &'t str {
        self.text[comment.span.start as usize..comment.span.end as usize].trim_end()
    }

    /// Adds comments on lines of their own.
    fn comments(&self, comments: &[Comment], depth: usize, end: &mut usize, lines: &mut Vec<Line>) {
        for comment in comments {
            lines.push(Line {
                depth,
                is_after_blank: self.is_blank_between(*end, comment.span.start as usize),
                text: self.comment(comment).to_owned(),
                assign: None,
                is_comment: true,
                trailing: String::new(),
            });
            *end = comment.span.end as usize;
        }
    }

    fn is_blank_between(&self, end: usize, start: usize) -> bool {
        self.text
            .get(end..start)
            .is_some_and(|gap| gap.matches('\n').count() > 1)
    }

    fn line(&self, run: &Run) -> Line {
        let mut text = match self.kind(run.tokens.start) {
            Some(TokenKind::Doc(_)) => self.source(run.tokens.start).trim_end().to_owned(),
            _ => self.join(run.tokens.clone(), WIDTH, run.depth * INDENT),
        };
        if run.needs_comma && !text.ends_with(',') && !text.starts_with("//") {
            text.push(',');
        }
        let is_instance = self.layout.starts.contains(&run.tokens.start)
            && self.is_punct(run.tokens.start + 1, Punct::Assign);
        let is_after_doc = run.tokens.start > 0
            && matches!(self.kind(run.tokens.start - 1), Some(TokenKind::Doc(_)))
            && self.is_punct(run.tokens.start + 1, Punct::Assign);
        let assign = text.find(" = ").filter(|_| is_instance || is_after_doc);
        Line {
            depth: run.depth,
            is_after_blank: false,
            text,
            assign,
            is_comment: matches!(self.kind(run.tokens.start), Some(TokenKind::Doc(_))),
            trailing: String::new(),
        }
    }

    fn is_in_type(&self, index: usize) -> bool {
        self.layout.types.contains(&index)
    }
}

/// Takes the comments that begin before a position.
fn take<'c>(comments: &mut &'c [Comment], end: usize) -> &'c [Comment] {
    let count = comments
        .iter()
        .take_while(|comment| (comment.span.start as usize) < end)
        .count();
    let taken;
    (taken, *comments) = comments.split_at(count);
    taken
}

/// Divides the comments of a line: those that go above it, and those at its end. Only the last can
/// be a line comment.
fn split_inner<'c>(comments: &[&'c str], is_doc: bool) -> (Vec<&'c str>, String) {
    let is_last = |index: usize| index + 1 == comments.len();
    let stays = |index: usize, comment: &str| {
        !is_doc && (is_last(index) || !(comment.starts_with("//") || comment.contains('\n')))
    };
    let mut hoisted = Vec::new();
    let mut trailing: Vec<&str> = Vec::new();
    for (index, &comment) in comments.iter().enumerate() {
        match stays(index, comment) {
            true => trailing.push(comment),
            false => hoisted.push(comment),
        }
    }
    (hoisted, trailing.join(" "))
}

/// Aligns the `=` of adjacent instances. A blank line and other statements separate them.
fn align(lines: &mut [Line]) {
    let mut start = 0;
    while start < lines.len() {
        let group = lines[start..]
            .iter()
            .enumerate()
            .take_while(|(index, line)| {
                let is_instance = line.assign.is_some() && line.depth == lines[start].depth;
                (is_instance || line.is_comment) && (*index == 0 || !line.is_after_blank)
            })
            .count()
            .max(1);
        let group = &mut lines[start..start + group];
        let column = group
            .iter()
            .filter_map(|line| line.assign)
            .max()
            .unwrap_or(0);
        for line in group.iter_mut() {
            if let Some(assign) = line.assign {
                line.text.insert_str(assign, &" ".repeat(column - assign));
            }
        }
        start += group.len();
    }
}

fn print(lines: &[Line]) -> String {
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &lines[before]);
        let begins_block =
            before.is_none_or(|before| before.text.ends_with(['{', '(']) && !before.is_comment);
        let is_after_doc = before.is_some_and(|before| before.text.starts_with("///"));
        let ends_block = line.text.starts_with(['}', ')']);
        // A graph or a test ends with a line that begins with its brace.
        let ends_item =
            before.is_some_and(|before| before.depth == 0 && before.text.starts_with('}'));
        if (line.is_after_blank && !begins_block && !ends_block && !is_after_doc) || ends_item {
            out.push('\n');
        }
        out.push_str(&" ".repeat(line.depth * INDENT));
        out.push_str(&line.text);
        if !line.trailing.is_empty() {
            out.push(' ');
            out.push_str(&line.trailing);
        }
        out.push('\n');
    }
    out
}
