//! The example site, as it is served.

use std::collections::BTreeSet;
use std::io::Read;

use tussah_services::web::site::{Coding, Codings, Found, Opened, Site, SiteOptions};

use crate::config::{example, examples};

fn file(found: Result<Found, impl std::fmt::Debug>, path: &str) -> Opened {
    match found {
        Ok(Found::File(opened)) => opened,
        other => panic!("{path}: {other:?}"),
    }
}

fn bytes(mut opened: Opened) -> Vec<u8> {
    let mut bytes = Vec::new();
    opened.file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn every_link_leads_to_something() {
    let site = Site::open(&examples().join("site"), SiteOptions::default()).unwrap();
    let (mut pending, mut seen) = (vec!["/".to_owned(), "/404.html".into()], BTreeSet::new());
    while let Some(path) = pending.pop() {
        // The server's own page, and the one that shows what is not found.
        if matches!(&*path, "/status" | "/nowhere") || !seen.insert(path.clone()) {
            continue;
        }
        let opened = file(site.look_up(path.as_bytes(), Codings::NONE), &path);
        if &*opened.meta.media_type != "text/html; charset=utf-8" {
            continue;
        }
        let page = String::from_utf8(bytes(opened)).unwrap();
        let links = ["href=\"", "src=\""]
            .into_iter()
            .flat_map(|attribute| page.split(attribute).skip(1));
        for link in links.map(|rest| rest.split('"').next().unwrap()) {
            assert!(link.starts_with('/'), "{link} in {path}");
            pending.push(link.to_owned());
        }
    }
    for expected in [
        "/guide/",
        "/style.css",
        "/cocoon.svg",
        "/stages.svg",
        "/files/poem.txt",
    ] {
        assert!(seen.contains(expected), "{seen:?}");
    }
}

#[test]
fn the_compressed_style_is_that_of_the_style() {
    let site = Site::open(&examples().join("site"), SiteOptions::default()).unwrap();
    let found = |acceptable| file(site.look_up(b"/style.css", acceptable), "/style.css");
    // The older one of the two would not be given, but which that is depends on how they were
    // copied.
    let compressed = site.look_up(b"/style.css.gz", Codings::NONE);
    let mut style = Vec::new();
    let compressed = file(compressed, "/style.css.gz").file;
    flate2::read::GzDecoder::new(compressed)
        .read_to_end(&mut style)
        .unwrap();
    assert_eq!(style, bytes(found(Codings::NONE)));
    let told = found(Codings::ALL).meta.coding;
    assert!(matches!(told, None | Some(Coding::Gzip)), "{told:?}");
}

#[test]
fn the_example_configuration_serves_it() {
    let config = example();
    let site = Site::open(&config.root, config.site).unwrap();
    assert!(matches!(
        site.look_up(b"/files/", Codings::NONE),
        Ok(Found::Listing(_))
    ));
    let page = site.error_page(404).unwrap().expect("there is a page");
    assert!(
        String::from_utf8(bytes(page))
            .unwrap()
            .contains("no such page")
    );
    let fields = site.fields(b"/cocoon.svg");
    let expected = [
        ("Cache-Control", "public, max-age=3600"),
        ("Referrer-Policy", "same-origin"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    assert_eq!(fields, expected);
    assert_eq!(site.fields(b"/")[0], ("Cache-Control", "no-cache"));
}
