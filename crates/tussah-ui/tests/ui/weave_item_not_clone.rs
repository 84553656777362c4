//! An item that is not `Clone` leaves along one edge only.

use tussah::flow::{AsyncOut, module, weave, weave_file};

struct Job;

#[derive(Default)]
struct Jobs;

#[module]
impl Jobs {
    async fn start(&self, out: &impl AsyncOut<Job>) {
        out.send(Job).await;
    }
}

#[derive(Default)]
struct Work;

#[module]
impl Work {
    fn run(&mut self, _job: Job) {}
}

weave! {
    use Jobs, Work

    graph Both() {
      jobs  = Jobs()
      one   = Work()
      other = Work()
      jobs -> one
      jobs -> other
    }
}

weave_file!("weave_item_not_clone.weave");

weave! {
    use Jobs, Work

    graph Either(more: flag) {
      jobs = Jobs()
      if more { work = Work() } else { work = Work() }
      jobs -> work
    }
}

fn main() {}
