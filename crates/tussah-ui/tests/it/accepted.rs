//! Code that the compiler must accept: arguments, a result, and further attributes.

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
    assert_eq!(main(), Ok(()));
}
