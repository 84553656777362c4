//! A stage in 30 lines. It prints the palindromes among the words that it receives, and rejects
//! those that it would not reach within 10 ms.
use std::time::Duration;
use tussah::stage::{Batch, BuildError, Handler, Network, shed};

struct Palindromes;

impl Handler for Palindromes {
    type Event = &'static str;
    async fn handle(&self, batch: &mut Batch<&'static str>) {
        for word in batch.drain() {
            if word.chars().eq(word.chars().rev()) {
                println!("{word}");
            }
        }
    }
}

#[tussah::main]
async fn main() -> Result<(), BuildError> {
    let network = Network::new("words");
    let within = Duration::from_millis(10);
    let stage = network.stage("palindromes").queue(1000).target(within);
    let stage = stage.handler(|_| Ok(Palindromes))?;
    for word in ["level", "stage", "noon"] {
        stage.sender().send_or(word, shed);
    }
    stage.drain().await;
    Ok(())
}
