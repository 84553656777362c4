//! The messages for wrong texts, and the code for right ones.

use std::path::{Path, PathBuf};

use super::fused::CALLS_MAX;
use super::*;

const NUMBERS: &str = "\
use Double, Print
graph Numbers() {
  double = Double()
  print  = Print()
  double -> print
}
";

fn expanded(text: &str) -> Result<String, String> {
    let file = "numbers.weave";
    let source = Source {
        file,
        text,
        include: quote!("text"),
        tokens: None,
    };
    let render = |errors: Vec<Diagnostic>| {
        let messages = errors.iter().map(|error| error.render(file, text));
        messages.collect::<Vec<_>>().join("\n")
    };
    let expanded = source.expand();
    expanded.map(|code| code.to_string()).map_err(render)
}

#[test]
fn a_graph_becomes_a_struct_with_its_modules() {
    let code = expanded(NUMBERS).expect("the text is right");
    assert!(code.contains("pub struct Numbers ;"), "{code}");
    let double = format!("__Module{}", port_number("Double"));
    let alias = format!("type {double} = Double ;");
    assert_eq!(code.matches(&alias).count(), 1, "{code}");
    let with = format!(r#". with :: < {double} > ("Double")"#);
    assert!(code.contains(&with), "{code}");
    let message = "numbers.weave:5:3: `double` sends `{Self}`, but `print` takes `{T}`";
    assert!(code.contains(message), "{code}");
}

#[test]
fn an_error_about_edges_depends_on_their_ports() {
    let text = NUMBERS.replace("double -> print\n", "double -> print -> double\n");
    let code = expanded(&text).expect("the ports may be wrong");
    assert!(!code.contains("struct Numbers"), "{code}");
    let message = "the cycle double -> print -> double can come to a standstill";
    assert_eq!(code.matches(message).count(), 1, "{code}");
    // Two checks of each edge, and their results in the condition of the error.
    assert_eq!(code.matches("unknown_port (").count(), 8, "{code}");
    // A wrong name is an error of its own.
    let text = text.replace("Print()", "Pritn()");
    let error = expanded(&text).expect_err("a name is wrong");
    assert!(error.contains("unknown module `Pritn`"), "{error}");
}

#[test]
fn a_file_names_its_lines_and_its_warnings() {
    let text = NUMBERS.replace("Numbers()", "Numbers(unused: count = 1)");
    let code = expanded(&text).expect("the text is right");
    for expected in [
        "macro_rules ! line_4_of_numbers_weave",
        "numbers.weave:2:15: the parameter `unused` has no effect",
    ] {
        assert!(code.contains(expected), "{expected}: {code}");
    }
    assert!(
        !expanded(NUMBERS)
            .expect("it is right")
            .contains("deprecated")
    );
}

#[test]
fn constants_that_pass_through_inner_graphs_are_checked() {
    let text = "use M
        graph Outer() { a = Inner(7, 8) }
        graph Inner(n: count, o: count) { m = M(n, o, 9) b = Deep(n: 5) }
        graph Deep(n: count) { m = M(n) }";
    let code = expanded(text).expect("the text is right");
    let checks = |count: u64, module: &str| {
        let checks = code.split("wrong_argument").filter(|check| {
            let is_of = check.contains(&format!("module : \"{module}\""));
            is_of && check.contains(&format!(":: Some ({count}f64)"))
        });
        checks.count()
    };
    // Each once, at the graph that has the constant.
    assert_eq!([checks(7, "a.m"), checks(8, "a.m"), checks(9, "M")], [1; 3]);
    assert_eq!(
        [checks(9, "a.m"), checks(5, "a.b.m"), checks(5, "b.m")],
        [0, 0, 1]
    );
}

#[test]
fn the_ports_in_tests_are_checked_at_their_instances() {
    let text = NUMBERS.to_owned()
        + "test \"ports\" of Numbers {
             send double 1
             expect double.out 2
             expect nothing at print.rest
           }";
    let code = expanded(&text).expect("the text is right");
    let checks = code.split("unknown_port (").skip(1);
    let checks: Vec<_> = checks
        .map(|it| &it[..it.find(')').expect("it ends")])
        .collect();
    let checks: Vec<_> = checks.iter().filter(|it| it.contains("\"port\"")).collect();
    let [out, rest] = &*checks else {
        panic!("two steps name ports: {code}");
    };
    assert!(
        out.ends_with("\"numbers.weave:9:28: \" , \"double\" , \"port\" , \"out\""),
        "{out}"
    );
    assert!(rest.ends_with("\"print\" , \"port\" , \"rest\""), "{rest}");
}

#[test]
fn fused_chains_become_types() {
    let text = NUMBERS.replace("  double ->", "  more = Double()\n  fuse double -> more ->");
    let code = expanded(&text).expect("the text is right");
    let ways = code.split("graph . fuse ::").skip(1).collect::<Vec<_>>();
    let [way] = &*ways else {
        panic!("one instance begins a chain: {code}");
    };
    let place = |name: &str| way.find(name).expect("it is part of the way");
    let [double, print] = ["Double", "Print"].map(|it| format!("__Module{}", port_number(it)));
    let begin = format!("< {double} , ::");
    assert!(way.trim_start().starts_with(&begin), "{way}");
    assert!(place("Fuse") < place(&print) && place(&print) < place("Along"));
    assert!(way.contains("(\"double\")"), "{way}");
}

#[test]
fn the_type_of_a_chain_has_a_bounded_number_of_calls() {
    let mut text = "use M graph Paths() {".to_owned();
    for at in 0..=8 {
        text += &format!("n{at} = M()\nl{at} = M()\nr{at} = M()\n");
    }
    for at in 0..8 {
        text += &format!("n{at}.a -> l{at} via call\nn{at}.b -> r{at} via call\n");
        for side in ["l", "r"] {
            text += &format!("{side}{at} -> n{} via call\n", at + 1);
        }
    }
    // 256 paths lead through the graph.
    let code = expanded(&(text + "}")).expect("the text is right");
    assert_eq!(code.matches("graph . fuse ::").count(), 1);
    assert_eq!(code.matches("expansion :: Fuse").count(), CALLS_MAX);
}

#[test]
fn a_wrong_text_is_shown_with_its_places() {
    let message = expanded(&NUMBERS.replace("-> print", "-> prnt")).expect_err("it is wrong");
    assert!(message.contains("numbers.weave:5:13"), "{message}");
    let message = expanded("graph {").expect_err("it is wrong");
    assert!(message.contains("numbers.weave:1:7"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let code = file(quote!("no/such.weave")).to_string();
    assert!(
        code.contains("compile_error") && code.contains("no/such.weave"),
        "{code}"
    );
    let code = file(quote!(no_string)).to_string();
    assert!(code.contains("compile_error"), "{code}");
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("the text is made of tokens of Rust")
}

#[test]
fn tokens_make_the_same_graph_as_their_text() {
    let with_all = "\
use http::{Listen, Reply}, Pages
/// Serves pages,
/// and nothing else.
graph Web(root: path, listen: address = \"127.0.0.1:8080\", cache: size = 200 MiB, ok: flag = true) {
  requests = Listen(listen, at_once: 8_192)
  /// Keeps pages.
  pages    = Pages<String>(root, limit: cache / workers) * workers by path
  reply    = Reply()
  requests -> pages via queue(10, when_full: shed) -> reply after 5 ms
  shed pages when p90 > 50ms -> reply.busy
  if ok && !false { pages.miss -> reply } else { pages.miss -> reply.busy via call }
}
";
    for text in [NUMBERS, with_all, "graph Empty {}"] {
        let written = Text::of(tokens(text));
        let checked = |text: &str| {
            let parsed = tussah_weave::parse(text);
            assert_eq!(parsed.diagnostics, [], "{text}");
            tussah_weave::check(&parsed.file, None).graphs
        };
        // The places of the parts are equal, too.
        assert_eq!(checked(text), checked(&written.text));
    }
}

/// Adds the texts of all files in Weave below a folder.
fn weave_files(folder: &Path, texts: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            weave_files(&path, texts);
        } else if path.extension().is_some_and(|it| it == "weave") {
            let text = std::fs::read_to_string(&path).expect("it is text");
            texts.push((path, text));
        }
    }
}

/// Returns the graphs, tests and errors of a text. Places are lines and columns, because comments
/// are no tokens.
fn meaning(text: &str) -> String {
    let parsed = tussah_weave::parse(text);
    let checked = tussah_weave::check(&parsed.file, None);
    let all = format!("{:#?} {checked:#?}", parsed.diagnostics);
    let place = |line: &str| {
        let (name, number) = line.trim().split_once(": ")?;
        let number = number
            .strip_suffix(',')
            .filter(|_| matches!(name, "start" | "end"))?;
        let before = text.get(..number.parse().ok()?)?;
        let column = before.lines().last().map_or(0, str::len);
        Some(format!("line {}, column {column}", before.lines().count()))
    };
    let lines = all
        .lines()
        .map(|line| place(line).unwrap_or_else(|| line.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

/// All files of the project, right and wrong ones.
#[test]
fn tokens_mean_the_same_as_the_text_of_each_file() {
    let mut texts = Vec::new();
    weave_files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut texts,
    );
    let mut compared = 0;
    for (path, text) in texts {
        // Space at the end of a line is no token.
        let text = text.lines().map(|line| line.trim_end().to_owned() + "\n");
        let text: String = text.collect();
        // Other texts are not made of tokens of Rust: their brackets do not match, for example.
        let Ok(tokens) = text.parse() else { continue };
        let (of_text, of_tokens) = (meaning(&text), meaning(&Text::of(tokens).text));
        for (of_text, of_tokens) in of_text.lines().zip(of_tokens.lines()) {
            assert_eq!(of_text, of_tokens, "{}", path.display());
        }
        assert_eq!(of_text, of_tokens, "{}", path.display());
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn an_error_in_tokens_leads_to_its_token() {
    let text = NUMBERS.replace("-> print", "-> prnt");
    let code = inline(tokens(&text)).to_string();
    assert!(
        code.contains("compile_error") && code.contains("prnt"),
        "{code}"
    );
    let written = Text::of(tokens(&text));
    let at = text.find("prnt").expect("it is there") as u32;
    let start = written.span(tussah_weave::Span::new(at, at + 4)).start();
    assert_eq!((start.line, start.column), (5, 12));
}
