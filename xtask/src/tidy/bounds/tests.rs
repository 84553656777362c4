//! Tests of the list of bounds: the comments that it reads, and the ones that it rejects.

use super::*;

fn collected(text: &str) -> (Vec<Bound>, Vec<Finding>) {
    collect(
        &Tree::of(&[("crates/tussah-core/src/time/wheel.rs", text)]),
        &[],
    )
}

#[track_caller]
fn expect(text: &str, item: &str, value: Option<&str>) {
    let (bounds, findings) = collected(text);
    assert_eq!(findings, []);
    let seen: Vec<_> = bounds
        .iter()
        .map(|bound| (bound.item.as_str(), bound.value.as_deref()))
        .collect();
    assert_eq!(seen, [(item, value)]);
    assert_eq!(
        (bounds[0].unit.as_str(), bounds[0].reason.as_str()),
        ("timers", "it is enough")
    );
}

const DOC: &str = "/// Bound, in timers: it is enough.\n";

#[test]
fn bounds_are_found_on_every_kind_of_item() {
    expect(
        &format!("{DOC}const N: usize = 1 << 4;\n"),
        "time::wheel::N",
        Some("1 << 4"),
    );
    expect(
        &format!("{DOC}pub static N: u8 = 4;\n"),
        "time::wheel::N",
        Some("4"),
    );
    expect(
        &format!("struct S {{\n{DOC}pub n: u8 }}\n"),
        "time::wheel::S::n",
        None,
    );
    expect(
        &format!("impl S {{\n{DOC}const N: u8 = 4; }}\n"),
        "time::wheel::S::N",
        Some("4"),
    );
    expect(&format!("{DOC}struct S;\n"), "time::wheel::S", None);
    expect(
        &format!("fn f() {{\n{DOC}const N: u8 = 4; }}\n"),
        "time::wheel::f::N",
        Some("4"),
    );
    expect(
        &format!("mod m {{\n{DOC}fn f() {{}} }}\n"),
        "time::wheel::m::f",
        None,
    );
}

#[test]
fn a_bound_may_stand_among_other_lines_and_go_on_for_several() {
    let text = "/// What it is.\n///\n/// Bound, in timers: it is\n/// enough.\n/// More.\nconst N: u8 = 4;\n";
    expect(text, "time::wheel::N", Some("4"));
}

#[test]
fn tests_and_models_are_left_out() {
    let (bounds, _) = collected(&format!(
        "#[cfg(test)]\nmod tests {{\n{DOC}const N: u8 = 4; }}\n"
    ));
    assert_eq!(bounds, []);
    let model = format!("{DOC}#[cfg(loom)]\nconst N: u8 = 2;\n");
    let real = format!("{DOC}#[cfg(not(loom))]\nconst N: u8 = 64;\n");
    expect(&format!("{model}{real}"), "time::wheel::N", Some("64"));
}

#[test]
fn a_line_without_the_form_is_found() {
    for doc in [
        "Bound: 4.",
        "Bound, in timers.",
        "Bound, in timers: no end",
        "Bound, in : x.",
    ] {
        let (bounds, findings) = collected(&format!("\n/// {doc}\nconst N: u8 = 4;\n"));
        assert_eq!(bounds, []);
        assert_eq!(findings[0].line, 2);
        assert!(
            findings[0].what.contains("is not a bound, expected"),
            "{findings:?}"
        );
    }
    assert_eq!(
        collected("/// Bounds of the heap.\nconst N: u8 = 4;\n").1,
        []
    );
}

#[test]
fn the_page_has_a_table_for_each_crate() {
    let (bounds, _) = collect(
        &Tree::of(&[
            (
                "crates/tussah/src/lib.rs",
                &format!("struct C {{\n{DOC}pub n: u8 }}\n"),
            ),
            (
                "crates/tussah-core/src/lib.rs",
                &format!("{DOC}const N: u8 = 4 | 2;\n"),
            ),
            (
                "crates/tussah/examples/some.rs",
                &format!("{DOC}const M: u8 = 4;\n"),
            ),
        ]),
        &[],
    );
    let page = page(&bounds);
    let row = "|---|---|---|---|\n| [`C::n`]";
    assert!(page.contains(row), "{page}");
    assert!(!page.contains("some.rs"), "{page}");
    let row = "| [`C::n`](../crates/tussah/src/lib.rs) |  | timers | it is enough |";
    assert!(page.contains(row), "{page}");
    let row = "| [`N`](../crates/tussah-core/src/lib.rs) | `4 \\| 2` | timers | it is enough |";
    assert!(page.contains(row), "{page}");
    assert_eq!(page.matches("\n## ").count(), 2);
}

#[test]
fn bounds_of_graphs_are_arguments_of_instances() {
    let collected = |path: &str, instance: &str| {
        let text = format!(
            "graph A {{\n  // One.\n  // Bound, in pages: it is\n  // enough.\n  {instance}\n}}"
        );
        collect(&Tree::of(&[]), &[(path.to_owned(), text)])
    };
    let path = "crates/tussah-services/src/web/a.weave";
    let (bounds, findings) = collected(path, "b = B(room: 1 << 4) * 2");
    assert_eq!(findings, []);
    let row = "| [`web::a::b::room`](../crates/tussah-services/src/web/a.weave) | `1 << 4` | pages | it is enough |";
    assert!(page(&bounds).contains(row), "{}", page(&bounds));
    let (bounds, findings) = collected(path, "b = B(room: 4, of: 5)");
    assert_eq!((bounds, findings[0].line), (Vec::new(), 3));
    let example = "crates/tussah/examples/a.weave";
    assert_eq!(
        collected(example, "b = B(room: 4)"),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn a_stale_page_is_found_at_the_first_line_that_differs() {
    assert_eq!(compare("a\nb\n", "a\nb\n"), None);
    let finding = compare("a\nx\n", "a\nb\n").unwrap();
    assert!(
        finding
            .to_string()
            .starts_with("docs/bounds.md:2: is stale, expected `b`")
    );
    assert!(
        compare("a\nb\nc\n", "a\nb\n")
            .unwrap()
            .what
            .contains("the end of the page")
    );
    assert_eq!(compare("", "a\n").unwrap().line, 1);
}
