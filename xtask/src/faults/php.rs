//! The scripts for the php-fpm behind the web server of the sweep.

use std::fs;
use std::path::Path;

/// The scripts. They set the length of their output, so that a client can see that it is cut off.
const SCRIPTS: [(&str, &str); 3] = [
    (
        "page.php",
        "<?php header('Content-Length: 7'); echo \"a page\\n\";",
    ),
    (
        "large.php",
        "<?php header('Content-Length: ' . filesize('large.bin')); readfile('large.bin');",
    ),
    (
        "post.php",
        "<?php $body = file_get_contents('php://input');
        header('Content-Length: ' . strlen($body)); echo $body;",
    ),
];

/// Writes the scripts into the folder of the site.
pub(super) fn write_scripts(folder: &Path) -> anyhow::Result<()> {
    for (name, text) in SCRIPTS {
        fs::write(folder.join("php").join(name), text)?;
    }
    Ok(())
}
