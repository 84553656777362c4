//! The Weave language, which describes a service as a graph of modules.
//!
//! Text becomes [tokens](lex), then a [tree](parse), then [checked graphs](check). A graph becomes
//! a [plan](Graph::instantiate) once its parameters have values. No code in this crate reads a
//! file, a clock or a socket, so every part can be fuzzed and used from a macro.
//!
//! ```
//! let text = r#"
//!     use Numbers, Print
//!     graph Count(first: count = 1) {
//!       numbers = Numbers(from: first)
//!       print   = Print()
//!       numbers -> print via queue(16)
//!     }
//! "#;
//! let parsed = tussah_weave::parse(text);
//! let checked = tussah_weave::check(&parsed.file, None);
//! assert!(parsed.diagnostics.is_empty() && checked.diagnostics.is_empty());
//! let plan = checked.graphs[0].instantiate(&Default::default(), 4).unwrap();
//! assert_eq!(plan.edges[0].to_string(), "numbers -> print");
//! ```

#![forbid(unsafe_code)]

mod check;
mod diagnostic;
mod domain;
pub mod draw;
mod expr;
mod format;
mod graph;
mod lex;
mod modules;
mod parse;
mod plan;
mod render;
pub mod suggest;
mod token;
pub mod tree;
mod types;
pub mod unit;
mod value;

pub use check::{Checked, check};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use domain::Domain;
pub use expr::{BinaryOp, EvalCause, EvalError, Expr, ExprKind, UnaryOp};
pub use format::format;
pub use graph::{
    Arg, Boundary, Edge, Graph, Group, Limit, Node, Param, Place, PortRef, Shards, Shed, Step,
    Test, Via, WhenFull,
};
pub use lex::{Comment, Lexed, lex};
#[doc(hidden)]
pub use modules::port_number;
pub use modules::{Body, Modules, Parallelism, ParamSignature, PortSignature, Signature};
pub use parse::{Parsed, parse, parse_tokens};
pub use plan::{
    Plan, PlanArg, PlanBoundary, PlanEdge, PlanLimit, PlanNode, PlanShards, PlanShed, PlanVia,
};
pub use token::{Punct, Span, Token, TokenKind};
pub use types::{Type, TypeError};
pub use value::{Kind, Value, ValueError};
