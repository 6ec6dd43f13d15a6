//! A program whose counters Prometheus reads: it works, and answers requests for its numbers. Run
//! it, and open <http://127.0.0.1:9464/metrics>; another address may be its argument. With the
//! argument `once` it prints what it would answer, and ends.

mod server;

use std::net::TcpListener;
use std::time::Duration;
use std::{env, thread};

use resident::ndarray::{Array1, Ix1};
use resident::ops;
use resident::prelude::*;

/// Where OpenTelemetry's exporters for Prometheus listen too.
const ADDRESS: &str = "127.0.0.1:9464";

/// Some work: an array that goes up, is doubled there, and comes down.
fn work() -> Result<f32> {
    let array = SmartArray::from(Array1::<f32>::ones(1000)).named("input");
    let mut doubled = SmartArray::<f32, Ix1>::uninit(1000).named("doubled");
    ops::add(&array, &array, &mut doubled)?;
    Ok(doubled.host()?.sum())
}

fn work_on() -> Result<()> {
    loop {
        work()?;
        thread::sleep(Duration::from_millis(100));
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let argument = env::args().nth(1);
    if argument.as_deref() == Some("once") {
        work()?;
        print!("{}", audit::counters().to_prometheus());
        return Ok(());
    }
    let listener = TcpListener::bind(argument.as_deref().unwrap_or(ADDRESS))?;
    println!("http://{}/metrics", listener.local_addr()?);
    thread::scope(|threads| {
        threads.spawn(|| work_on().expect("the work succeeds"));
        server::serve(&listener)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::{server, work};

    /// What a server answers to a request for a path.
    fn answer(path: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        thread::scope(|threads| {
            threads.spawn(|| server::answer_next(&listener).expect("a connection"));
            let mut stream = TcpStream::connect(address).expect("it listens");
            write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            answer
        })
    }

    /// The samples of an answer, by their names and labels.
    fn samples(body: &str) -> BTreeMap<&str, f64> {
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                (name, value.parse().expect("a number"))
            })
            .collect()
    }

    #[test]
    fn the_numbers_are_those_of_the_counters_and_have_their_types() {
        assert_eq!(work().expect("it succeeds"), 2000.0);
        let before = resident::audit::counters();
        let answer = answer("/metrics");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        let samples = samples(body);
        assert_eq!(samples["resident_launches_total"], before.launches as f64);
        let down = before.traffic.to_host.bytes as f64;
        assert_eq!(samples["resident_copied_bytes_total{direction=\"to_host\"}"], down);
        assert_eq!(samples["resident_live_arrays"], 0.0);
        let peak = before.device_memory.peak as f64;
        assert_eq!(samples["resident_memory_peak_bytes{memory=\"device\"}"], peak);
        let families: BTreeSet<_> =
            samples.keys().map(|name| name.split('{').next().expect("a name")).collect();
        for family in families {
            let kind = if family.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(body.matches(&format!("# TYPE {family} {kind}\n")).count(), 1, "{body}");
            assert_eq!(body.matches(&format!("# HELP {family} ")).count(), 1, "{body}");
        }
    }

    #[test]
    fn other_paths_are_not_found() {
        assert!(answer("/").starts_with("HTTP/1.1 404 Not Found\r\n"));
    }
}
