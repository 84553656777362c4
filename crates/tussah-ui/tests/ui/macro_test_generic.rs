//! Fails: a test has no generic parameters.

#[tussah::test]
async fn generic<T: Default>() {
    drop(T::default());
}

fn main() {}
