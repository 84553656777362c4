//! Drawings: `tests/drawn/NAME.svg` and `.dot`. `WEAVE_BLESS=1` writes them.

use std::path::Path;

use tussah_weave::{check, draw, parse};

use crate::modules::modules;

const PROGRAMS: &[(&str, &str)] = &[
    ("web", include_str!("../good/web.weave")),
    ("lines", include_str!("../good/lines.weave")),
    ("video", include_str!("../good/video.weave")),
    ("spaces", include_str!("../good/spaces.weave")),
];

#[test]
fn graphs_are_drawn_as_before() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drawn");
    let is_blessed = std::env::var_os("WEAVE_BLESS").is_some();
    let modules = modules();
    for &(name, text) in PROGRAMS {
        let parsed = parse(text);
        // The last program has modules that do not exist.
        let modules = (name != "spaces").then_some(&modules);
        let checked = check(&parsed.file, modules);
        for graph in &checked.graphs {
            let pictures = [
                ("svg", draw::svg(graph, modules)),
                ("dot", draw::dot(graph, modules)),
            ];
            for (extension, drawn) in pictures {
                let path = directory.join(format!("{name}-{}.{extension}", graph.name));
                if is_blessed {
                    std::fs::create_dir_all(&directory).expect("a directory can be made");
                    std::fs::write(&path, &drawn).expect("a drawing can be written");
                }
                let expected = std::fs::read_to_string(&path).unwrap_or_default();
                assert!(
                    expected == drawn,
                    "{} differs; WEAVE_BLESS=1 writes it",
                    path.display()
                );
            }
        }
    }
}
