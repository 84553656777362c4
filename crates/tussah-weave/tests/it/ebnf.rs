//! Grammars in EBNF: a reader, a generator of sentences, and a recognizer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// An expression of EBNF.
#[derive(Debug)]
enum Rule {
    /// A word in quotes.
    Word(String),
    /// A class of tokens, in capitals.
    Class(String),
    /// A production, in lowercase.
    Name(String),
    Sequence(Vec<Rule>),
    Choice(Vec<Rule>),
    Optional(Box<Rule>),
    Repeated(Box<Rule>),
}

/// The classes of tokens, which a grammar names in capitals.
pub trait Classes {
    /// Returns tokens of a class.
    fn samples(&self, class: &str) -> &[&str];

    /// Returns the ends of all tokens of a class that begin at `start`.
    fn ends(&self, class: &str, tokens: &[String], start: usize) -> Vec<usize>;

    /// Returns whether a production must not begin with a token.
    fn is_barred(&self, production: &str, token: &str) -> bool;
}

/// A grammar.
pub struct Grammar<'a> {
    rules: BTreeMap<String, Rule>,
    classes: &'a dyn Classes,
}

impl<'a> Grammar<'a> {
    /// Reads a grammar, with one production per line.
    pub fn read(text: &str, classes: &'a dyn Classes) -> Self {
        let mut rules = BTreeMap::new();
        for line in text.lines() {
            let (name, rule) = line.split_once(" = ").expect(line);
            let tokens: Vec<&str> = rule.split_whitespace().collect();
            let (rule, rest) = choice(&tokens);
            assert_eq!(rest, [";"], "the end of `{line}`");
            let earlier = rules.insert(name.trim().to_owned(), rule);
            assert!(earlier.is_none(), "`{line}` comes twice");
        }
        Self { rules, classes }
    }

    fn rule(&self, name: &str) -> &Rule {
        let rule = self.rules.get(name);
        rule.unwrap_or_else(|| panic!("`{name}` is not defined"))
    }

    /// Returns the names of the productions.
    pub fn productions(&self) -> BTreeSet<&str> {
        self.rules.keys().map(String::as_str).collect()
    }

    /// Returns the words between quotes.
    pub fn words(&self) -> BTreeSet<&str> {
        let mut words = BTreeSet::new();
        let mut rules: Vec<&Rule> = self.rules.values().collect();
        while let Some(rule) = rules.pop() {
            match rule {
                Rule::Word(word) => drop(words.insert(word.as_str())),
                Rule::Class(_) | Rule::Name(_) => {}
                Rule::Sequence(parts) | Rule::Choice(parts) => rules.extend(parts),
                Rule::Optional(part) | Rule::Repeated(part) => rules.push(part),
            }
        }
        words
    }

    /// Returns whether `tokens` are a sentence of the production `name`.
    pub fn accepts(&self, name: &str, tokens: &[String]) -> bool {
        let memo = RefCell::default();
        let run = Run {
            grammar: self,
            tokens,
            memo,
        };
        run.production(name, 0).contains(&tokens.len())
    }
}

/// Reads alternatives, and returns the tokens after them.
fn choice<'t>(tokens: &'t [&'t str]) -> (Rule, &'t [&'t str]) {
    let (mut first, mut rest) = sequence(tokens);
    if rest[0] == "|" {
        let mut choices = vec![first];
        while rest[0] == "|" {
            let (next, after) = sequence(&rest[1..]);
            choices.push(next);
            rest = after;
        }
        first = Rule::Choice(choices);
    }
    (first, rest)
}

fn sequence<'t>(mut rest: &'t [&'t str]) -> (Rule, &'t [&'t str]) {
    let mut parts = Vec::new();
    while !["|", ")", "]", "}", ";"].contains(&rest[0]) {
        let first = rest[0];
        rest = &rest[1..];
        let closing = match first {
            "(" => ")",
            "[" => "]",
            "{" => "}",
            word => {
                parts.push(match word.strip_prefix('"') {
                    Some(word) => Rule::Word(word.strip_suffix('"').expect("a quote").to_owned()),
                    None if word.starts_with(|c: char| c.is_ascii_uppercase()) => {
                        Rule::Class(word.to_owned())
                    }
                    None => Rule::Name(word.to_owned()),
                });
                continue;
            }
        };
        let (inner, after) = choice(rest);
        assert_eq!(after[0], closing);
        rest = &after[1..];
        parts.push(match first {
            "[" => Rule::Optional(Box::new(inner)),
            "{" => Rule::Repeated(Box::new(inner)),
            _ => inner,
        });
    }
    (Rule::Sequence(parts), rest)
}

/// Random sentences of a grammar.
pub struct Generator<'a> {
    grammar: &'a Grammar<'a>,
    state: u64,
    sentence: Vec<String>,
    /// The productions that were expanded.
    pub used: BTreeSet<&'a str>,
}

/// Bound, in levels: the nesting of productions; beyond, the generator leaves out optional parts,
/// so that sentences stay below the limits of the parser.
const DEPTH_MAX: usize = 24;

impl<'a> Generator<'a> {
    pub fn new(grammar: &'a Grammar<'a>, seed: u64) -> Self {
        Self {
            grammar,
            state: seed,
            sentence: Vec::new(),
            used: BTreeSet::new(),
        }
    }

    /// Returns a number below `end` (SplitMix64).
    pub fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    /// Returns a random sentence of the production `name`.
    pub fn sentence(&mut self, name: &'a str) -> Vec<String> {
        self.expand_name(name, 0);
        std::mem::take(&mut self.sentence)
    }

    fn expand_name(&mut self, name: &'a str, depth: usize) {
        self.used.insert(name);
        let start = self.sentence.len();
        let rule = self.grammar.rule(name);
        self.expand(rule, depth + 1);
        // A sample may be a word with which the production must not begin.
        let first = self.sentence.get(start);
        if first.is_some_and(|first| self.grammar.classes.is_barred(name, first)) {
            self.sentence.truncate(start);
            self.expand_name(name, depth);
        }
    }

    fn expand(&mut self, rule: &'a Rule, depth: usize) {
        match rule {
            Rule::Word(word) => self.sentence.push(word.clone()),
            Rule::Class(class) => {
                let samples = self.grammar.classes.samples(class);
                let sample = self.below(samples.len());
                self.sentence.push(samples[sample].to_owned());
            }
            Rule::Name(name) => self.expand_name(name, depth),
            Rule::Sequence(parts) => parts.iter().for_each(|part| self.expand(part, depth)),
            // The last alternative leads back to `expr`, so none is taken at a great depth.
            Rule::Choice(choices) => {
                let end = match depth > DEPTH_MAX {
                    true => 1,
                    false => choices.len(),
                };
                let choice = self.below(end);
                self.expand(&choices[choice], depth);
            }
            Rule::Optional(part) | Rule::Repeated(part) => {
                let max = 1 + usize::from(matches!(rule, Rule::Repeated(_)));
                let mut count = 0;
                while count < max && depth <= DEPTH_MAX && self.below(depth / 2 + 3) < 2 {
                    self.expand(part, depth);
                    count += 1;
                }
            }
        }
    }
}

/// The recognition of one text: all ends of all productions, each computed once.
struct Run<'a> {
    grammar: &'a Grammar<'a>,
    tokens: &'a [String],
    memo: RefCell<BTreeMap<(String, usize), BTreeSet<usize>>>,
}

impl Run<'_> {
    /// Returns the ends of the sentences of a production that begin at `start`.
    fn production(&self, name: &str, start: usize) -> BTreeSet<usize> {
        let key = (name.to_owned(), start);
        if let Some(found) = self.memo.borrow().get(&key) {
            return found.clone();
        }
        let first = self.tokens.get(start);
        let is_barred = first.is_some_and(|first| self.grammar.classes.is_barred(name, first));
        let ends = match is_barred {
            true => BTreeSet::new(),
            false => self.ends(self.grammar.rule(name), start),
        };
        self.memo.borrow_mut().insert(key, ends.clone());
        ends
    }

    fn ends(&self, rule: &Rule, start: usize) -> BTreeSet<usize> {
        let single = |is_next: bool| is_next.then_some(start + 1).into_iter().collect();
        match rule {
            Rule::Word(word) => single(self.tokens.get(start) == Some(word)),
            Rule::Class(class) => {
                let classes = self.grammar.classes;
                classes
                    .ends(class, self.tokens, start)
                    .into_iter()
                    .collect()
            }
            Rule::Name(name) => self.production(name, start),
            Rule::Choice(choices) => {
                let each = choices.iter().map(|choice| self.ends(choice, start));
                each.flatten().collect()
            }
            Rule::Sequence(parts) => parts.iter().fold(BTreeSet::from([start]), |starts, part| {
                starts
                    .into_iter()
                    .flat_map(|start| self.ends(part, start))
                    .collect()
            }),
            Rule::Optional(part) => &self.ends(part, start) | &BTreeSet::from([start]),
            Rule::Repeated(part) => {
                let mut ends = BTreeSet::from([start]);
                let mut new = vec![start];
                while let Some(end) = new.pop() {
                    new.extend(
                        self.ends(part, end)
                            .into_iter()
                            .filter(|&end| ends.insert(end)),
                    );
                }
                ends
            }
        }
    }
}
