//! Parses one header repeatedly, so that `valgrind --tool=callgrind` can count the instructions.
//!
//! `cargo run --release --example head_cost -- [plain|browser] COUNT`. The difference between two
//! counts excludes the cost of starting the program.

use std::hint::black_box;

use tussah_wire::http::head::{Limits, parse};

const PLAIN: &[u8] = b"GET /dir00001/class1_3 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const BROWSER: &[u8] = b"GET /dir00001/class1_3 HTTP/1.1\r\n\
Host: 127.0.0.1:8080\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
Accept-Language: en-US,en;q=0.5\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Referer: http://127.0.0.1:8080/dir00001/\r\n\
Connection: keep-alive\r\n\
Upgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\n\
If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let bytes = match arguments.get(1).map(String::as_str) {
        Some("browser") => BROWSER,
        _ => PLAIN,
    };
    let count: usize = arguments
        .get(2)
        .map_or(1000, |count| count.parse().expect("COUNT is a number"));
    let limits = Limits::default();
    for _ in 0..count {
        let head = parse(black_box(bytes), &limits)
            .expect("the head is valid")
            .expect("the head is complete");
        black_box(&head);
    }
    println!("{count} heads of {} bytes", bytes.len());
}
