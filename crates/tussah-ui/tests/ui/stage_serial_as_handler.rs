//! Fails: a serial handler is no handler for several servlets.

use tussah::stage::{Batch, BuildError, Network, SerialHandler};

struct Sum(u64);

impl SerialHandler for Sum {
    type Event = u64;
    async fn handle(&mut self, batch: &mut Batch<u64>) {
        self.0 += batch.drain().sum::<u64>();
    }
}

fn main() -> Result<(), BuildError> {
    Network::new("sums").stage("sum").handler(|_| Ok(Sum(0)))?;
    Ok(())
}
