//! The page cache, as clients see it: whatever it keeps and forgets, the bytes are those of the
//! files.

use proptest::prelude::*;
use tussah_services::web::config::CacheKind;

use super::client::request;
use super::server::{Site, assert_same, bytes};

#[test]
fn concurrent_requests_for_one_page_all_get_it() {
    for kind in [CacheKind::Sharded, CacheKind::None] {
        let site = Site::new()
            .file("page.bin", bytes(90_000))
            .with(|config| config.cache.kind = kind);
        let server = site.start();
        let mut clients: Vec<_> = (0..60).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send(request("GET", "/page.bin", "") + &request("GET", "/none", ""));
        }
        for client in &mut clients {
            assert_same(&client.answer().body, &bytes(90_000));
            assert_eq!(client.answer().status, 404);
        }
    }
}

/// Bound, in files: those of the test below.
const FILES: usize = 12;

/// Of a file, which is of another length each time it is written.
fn content(file: usize, version: u64) -> Vec<u8> {
    let mut content = bytes(300 * (file + 1) + version as usize);
    content.extend(format!("{file} {version}").bytes());
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// There is room for some of the files, and some never fit. Every step asks for a file; at
    /// times a file has been written anew, and two seconds have passed.
    #[test]
    fn an_evicted_page_is_read_again(steps in prop::collection::vec((0..FILES, 0..12_u8), 1..80)) {
        let mut site = Site::new().with(|config| config.cache.bytes = 30_000);
        for file in 0..FILES {
            site = site.file(&file.to_string(), content(file, 0));
        }
        let (server, hand) = site.start_by_hand();
        let mut versions = [0; FILES];
        let mut client = server.connect();
        for (file, what) in steps {
            if what == 0 {
                versions[file] += 1;
                server.site.write(&file.to_string(), content(file, versions[file]), 784_111_777 + versions[file]);
                server.pass(&hand, 2);
            }
            prop_assert_eq!(client.get(&format!("/{file}"), "").body, content(file, versions[file]));
        }
    }
}
