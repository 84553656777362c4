//! The messages for wrong texts, and the code for right ones.

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
    let code = expand("numbers.weave", text, &quote!("text"))?;
    Ok(code.to_string())
}

#[test]
fn a_graph_becomes_a_struct_with_its_modules() {
    let code = expanded(NUMBERS).expect("the text is right");
    assert!(code.contains("pub struct Numbers ;"), "{code}");
    assert!(
        code.contains(r#". with :: < Double > ("Double")"#),
        "{code}"
    );
    let message = "numbers.weave:5:3: `double` sends `{Self}`, but `print` takes `{T}`";
    assert!(code.contains(message), "{code}");
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
