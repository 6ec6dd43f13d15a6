//! A server that answers one request after the other, which is enough for Prometheus.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::Duration;

use resident::audit;

/// That of `Counters::to_prometheus`.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A client that says nothing for longer is left alone.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn serve(listener: &TcpListener) -> io::Result<()> {
    loop {
        if let Err(error) = answer_next(listener) {
            eprintln!("a request was not answered: {error}");
        }
    }
}

pub(crate) fn answer_next(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut request = String::new();
    let mut lines = BufReader::new(&stream);
    lines.read_line(&mut request)?;
    // The head ends with an empty line; unread bytes would break the connection.
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let (status, body) = match request.split(' ').collect::<Vec<_>>()[..] {
        ["GET", "/metrics", _] => ("200 OK", audit::counters().to_prometheus()),
        _ => ("404 Not Found", String::from("the numbers are at /metrics\n")),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
