//! Fails: it would be two tests.

#[tussah::test]
#[test]
async fn twice() {}

fn main() {}
