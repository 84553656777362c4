//! The command `tussah`.

#![forbid(unsafe_code)]

fn main() {
    let args: Vec<String> = std::env::args().collect();
    tussah_services::web::serve::run(
        args[1].clone().into(),
        &args[2],
        args[3].parse().expect("n"),
    )
    .expect("runs");
}
