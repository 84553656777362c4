//! Code that the compiler must accept: arguments, a result, and further attributes.

use tussah::flow::{Batch, Modules, Out, Params, module};

#[tussah::main(workers = 1, name = "ui")]
async fn main() -> Result<(), std::num::ParseIntError> {
    #![allow(unused_variables)]
    let number: u8 = "7".parse()?;
    if number == 7 {
        return Ok(());
    }
    unreachable!()
}

#[test]
fn main_has_a_result() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}

mod boxed {
    #[tussah::main]
    pub(super) async fn main() -> Result<(), Box<dyn std::error::Error>> {
        "seven".parse::<u8>()?;
        Ok(())
    }
}

#[test]
fn the_error_of_main_need_not_be_send() {
    assert_eq!(boxed::main(), std::process::ExitCode::FAILURE);
}

#[tussah::test]
async fn the_error_of_a_test_need_not_be_send() -> Result<(), Box<dyn std::error::Error>> {
    "7".parse::<u8>()?;
    Ok(())
}

/// Modules whose names and types are fragments of a macro.
macro_rules! relay {
    ($name:ident, $module:ty, $item:ty, $batch:ty, $state:ty, $result:ty, $out:path, $body:block) => {
        #[derive(Default)]
        struct $name;

        #[module]
        impl $module {
            fn run(
                &self,
                items: $batch,
                state: &mut $state,
                out: &impl Out<$item>,
                more: Option<&impl $out>,
            ) -> $result {
                let _unused = (state, more.is_some());
                items.for_each(|item| out.send(item));
                $body
            }

            #[port]
            fn one(&self, item: $item, out: &impl Out<$item>) {
                out.send(item);
            }

            fn end(&self, _state: $state) {}
        }
    };
}

relay!(Relay, Relay, Vec<u64>, &mut Batch<Vec<u64>>, Option<u8>, Result<(), String>, Out<u8>, {
    Ok(())
});

#[test]
fn fragments_of_macros_can_be_types_of_a_module() {
    let modules = Modules::new().with::<Relay>("Relay");
    let text = "use Relay graph G() { a = Relay() b = Relay() a -> b.one a.failed -> b.one }";
    let error = modules.graph("g.weave", text, &Params::new());
    let error = error.expect_err("the error is no item").to_string();
    assert!(
        error.contains("String") && error.contains("Vec<u64>"),
        "{error}"
    );
}
