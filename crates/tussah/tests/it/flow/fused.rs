//! Fused chains: the same results in the same order as with queues.

use tussah::flow::{AsyncOut, Dropped, Modules, Out, Params, module};

use super::{Note as AnyNote, Notes};
use crate::runtime;

type Note = AnyNote<u64>;
type NoteDropped = AnyNote<Dropped<u64>>;

struct Numbers(u64);

#[module]
impl Numbers {
    fn init(items: u64) -> Self {
        Self(items)
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        for number in 0..self.0 {
            out.send(number).await;
        }
    }
}

/// Adds a number, and sends some results twice or not at all.
struct Add(u64);

#[module]
impl Add {
    fn init(number: u64) -> Self {
        Self(number)
    }

    fn run(&self, number: u64, out: &impl Out<u64>, twice: &impl Out<u64>) {
        let sum = number + self.0;
        match sum % 7 {
            0 => {}
            1 => {
                out.send(sum);
                twice.send(sum);
                out.send(sum + 1);
            }
            _ => out.send(sum),
        }
    }
}

/// Fails for some numbers, and panics for others.
#[derive(Default)]
struct Check;

#[module]
impl Check {
    fn run(&self, number: u64, out: &impl Out<u64>) -> Result<(), u64> {
        out.send(number);
        assert!(number % 13 != 5, "{number}");
        if number.is_multiple_of(5) {
            Err(number)
        } else {
            Ok(())
        }
    }
}

/// Sends the sum of all numbers so far. It panics twice, and then begins anew.
#[derive(Default)]
struct Sum(u64);

#[module]
impl Sum {
    fn run(&mut self, number: u64, out: &impl Out<u64>) {
        assert!(number != 60 && number != 90, "{number}");
        self.0 += number;
        out.send(self.0);
    }
}

/// Returns what arrives at each port of a chain of four modules, which a number chooses.
fn notes(seed: u64, fuse: &str) -> Vec<Vec<String>> {
    const MODULES: [&str; 4] = ["Add(1)", "Add(4)", "Check()", "Sum()"];
    let mut text = "use Numbers, Add, Check, Sum, Note, NoteDropped graph G(\n".to_owned();
    let (mut params, mut body) = (Params::new(), "numbers = Numbers(200)\n".to_owned());
    let mut all = Vec::new();
    let mut note = |port: &str, body: &mut String, module: &str| {
        let (notes, name) = (Notes::default(), format!("note_{}", all.len()));
        text.push_str(&format!("{name}_to: Notes,\n"));
        body.push_str(&format!("{name} = {module}({name}_to)\n{port} -> {name}\n"));
        params = std::mem::take(&mut params).typed(&format!("{name}_to"), notes.clone());
        all.push(notes);
    };
    for (at, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let module = MODULES[(seed >> (2 * at) & 3) as usize];
        body.push_str(&format!("{name} = {module}\n"));
        note(&format!("{name}.dropped"), &mut body, "NoteDropped");
        match module {
            "Check()" => note(&format!("{name}.failed"), &mut body, "Note"),
            "Sum()" => {}
            _ => note(&format!("{name}.twice"), &mut body, "Note"),
        }
    }
    note("d", &mut body, "Note");
    text.push_str(&format!(
        ") {{ {body} numbers -> a\n {fuse} a -> b -> c -> d }}"
    ));
    let modules = Modules::new().with::<Numbers>("Numbers").with::<Add>("Add");
    let modules = modules.with::<Check>("Check").with::<Sum>("Sum");
    let modules = modules
        .with::<Note>("Note")
        .with::<NoteDropped>("NoteDropped");
    // One worker, so that queues keep the order.
    runtime(1).block_on(async {
        let graph = modules
            .graph("g.weave", &text, &params)
            .expect("the text is right");
        let running = graph.start().expect("it is whole");
        running.drain().await;
        let stats = ["b", "c", "d"].map(|name| running.stats(name).expect("it exists"));
        if !fuse.is_empty() {
            // Nothing has been in a queue.
            assert!(stats.iter().all(|stats| stats.finished == 0), "{text}");
        }
    });
    all.into_iter().map(|notes| notes.take()).collect()
}

#[test]
fn fused_and_queued_chains_send_the_same() {
    for seed in (0..256).step_by(5) {
        assert_eq!(notes(seed, "fuse"), notes(seed, ""), "{seed}");
    }
}
