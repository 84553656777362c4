//! Tests with wrk: many connections, with and without pipelining.

use std::fs;
use std::process::Command;

use super::output;
use super::server::Place;

/// A script that sends sixteen requests at a time.
const PIPELINE: &str = "\
init = function(args)
    local requests = {}
    for n = 1, 16 do
        requests[n] = wrk.format(nil, n % 2 == 0 and \"/files/poem.txt\" or \"/style.css\")
    end
    all = table.concat(requests)
end
request = function() return all end
";

/// Loads both servers, each for a second with one request at a time on a connection, and for a
/// second with many.
pub(super) fn check(place: &Place, program: &str) -> anyhow::Result<Vec<String>> {
    let script = place.folder.join("pipeline.lua");
    fs::write(&script, PIPELINE)?;
    let mut failures = Vec::new();
    for server in place.servers()? {
        // The connections share the bandwidth, and with more of them none might receive the whole
        // large file within the second.
        for (path, connections, pipelined) in [
            ("/", "-c64", false),
            ("/large.bin", "-c8", false),
            ("/", "-c64", true),
        ] {
            let mut wrk = Command::new(program);
            wrk.args(["-t1", connections, "-d1s"]);
            if pipelined {
                wrk.arg("-s").arg(&script);
            }
            let text = String::from_utf8_lossy(&output(wrk.arg(server.url.clone() + path))?.out)
                .into_owned();
            let requests = text
                .lines()
                .find_map(|line| line.trim().split_once(" requests in "));
            let some = requests
                .is_some_and(|(count, _)| count.parse::<u64>().is_ok_and(|count| count > 0));
            if !some || text.contains("Non-2xx") || text.contains("Socket errors") {
                failures.push(format!(
                    "{}{path}, pipelined: {pipelined}: {text}",
                    server.url
                ));
            }
        }
        server.end()?;
    }
    Ok(failures)
}
