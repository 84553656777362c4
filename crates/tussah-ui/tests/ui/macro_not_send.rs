//! Fails: the body runs on any worker, so what it keeps over an await has to be `Send`.

#[tussah::main]
async fn main() {
    let local = std::rc::Rc::new(0);
    std::future::ready(()).await;
    drop(local);
}
