//! Fails: the return type need not be `Send`, but what the body keeps over an await has to be.

#[tussah::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let local = std::rc::Rc::new(0);
    std::future::ready(()).await;
    drop(local);
    Ok(())
}
