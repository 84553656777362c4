//! The configuration and the scripts for the php-fpm behind the web server of the sweep.

use std::fs;
use std::path::Path;

use crate::php;

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

/// Writes the scripts into the folder of the site, and the configuration of the server beside it.
pub(super) fn write_site(folder: &Path) -> anyhow::Result<()> {
    // An injected `ECONNRESET` does not end the connection, so php-fpm waits for the body that the
    // server could not send. The limit ends this before the client gives up.
    let config = format!(
        "[[fastcgi]]\naddress = \"unix:{}\"\nsuffix = \".php\"\ntimeout = \"5s\"\n",
        php::socket(folder).display()
    );
    fs::write(folder.join("php.toml"), config)?;
    for (name, text) in SCRIPTS {
        fs::write(folder.join("php").join(name), text)?;
    }
    Ok(())
}
