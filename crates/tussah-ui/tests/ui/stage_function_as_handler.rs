//! Fails: a function is no handler.

use tussah::stage::{Batch, BuildError, Network};

fn main() -> Result<(), BuildError> {
    let sum = async |batch: &mut Batch<u64>| drop(batch.drain().sum::<u64>());
    Network::new("sums").stage("sum").serial(move |_| Ok(sum))?;
    Ok(())
}
