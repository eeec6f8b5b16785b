//! The load: client threads with connections that stay open.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::gpu;

type Failure = Box<dyn Error + Send + Sync>;

/// What the clients do.
#[derive(Clone, Copy)]
pub struct Load {
    pub clients: usize,
    /// Requests a second, or as many as possible if this is 0.
    pub rate: f64,
    pub time: Duration,
}

pub const HANDLERS: [&str; 2] = ["blocking", "direct"];

/// Returns the latencies of each of the [`HANDLERS`] in microseconds, sorted.
pub fn run(address: SocketAddr, load: Load) -> Result<[Vec<f64>; 2], Failure> {
    let next = AtomicUsize::new(0);
    let begin = Instant::now();
    let client = || -> Result<Vec<(usize, f64)>, Failure> {
        let mut client = Client::connect(address)?;
        let mut latencies = Vec::new();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if load.rate > 0.0 {
                let due = Duration::from_secs_f64(seed as f64 / load.rate);
                thread::sleep(due.saturating_sub(begin.elapsed()));
            }
            if begin.elapsed() >= load.time {
                return Ok(latencies);
            }
            let handler = seed % HANDLERS.len();
            let sent = Instant::now();
            let answer = client.get(&format!("/{}/{seed}", HANDLERS[handler]))?;
            latencies.push((handler, sent.elapsed().as_secs_f64() * 1e6));
            if answer.trim().parse::<f32>()? != gpu::expected(seed) {
                return Err(format!("request {seed}: {answer}").into());
            }
        }
    };
    let latencies = thread::scope(|scope| {
        let clients: Vec<_> = (0..load.clients).map(|_| scope.spawn(client)).collect();
        let joined = clients.into_iter().map(|client| client.join().expect("no client panics"));
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let of = |handler: usize| {
        let all = latencies.iter().flatten().filter(|(of, _)| *of == handler);
        let mut of: Vec<f64> = all.map(|(_, latency)| *latency).collect();
        of.sort_by(f64::total_cmp);
        of
    };
    Ok([of(0), of(1)])
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: SocketAddr) -> Result<Client, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Client(BufReader::new(stream)))
    }

    /// Returns the body of an answer.
    fn get(&mut self, path: &str) -> Result<String, Failure> {
        let Client(stream) = self;
        write!(stream.get_mut(), "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            if stream.read_line(&mut head)? == 0 {
                return Err("the server has closed the connection".into());
            }
            if let Some(value) = head[begin..].strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        if head.starts_with("HTTP/1.1 200 ") {
            Ok(body)
        } else {
            Err(format!("{path}: {body}").into())
        }
    }
}
