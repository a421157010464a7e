//! A server of HTTP for tests: it records requests and answers as a function says.
#![allow(dead_code)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Request {
    pub at: Instant,
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// The last part of the path, such as `heartbeat`.
    pub fn name(&self) -> &str {
        self.path().rsplit('/').next().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// An answer.
#[derive(Clone, Default)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Less than the body: the connection breaks there.
    length: Option<usize>,
    /// Nothing is answered.
    silent: bool,
}

impl Reply {
    pub fn json(value: Value) -> Self {
        Self::new(200, value.to_string()).with("content-type", "application/json")
    }

    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            body: body.into(),
            ..Self::default()
        }
    }

    pub fn problem(status: u16, code: &str) -> Self {
        let body = serde_json::json!({"status": status, "code": code, "detail": "a test"});
        Self::new(status, body.to_string()).with("x-correlation-id", "corr-1")
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Names a longer body than it sends.
    pub fn cut(mut self, length: usize) -> Self {
        self.length = Some(length);
        self
    }

    pub fn nothing() -> Self {
        Self {
            silent: true,
            ..Self::default()
        }
    }
}

type Answer = dyn Fn(&Request, usize) -> Reply + Send + Sync;

pub struct Server {
    pub url: String,
    requests: Arc<(Mutex<Vec<Request>>, Condvar)>,
}

impl Server {
    /// The function gets a request, and how many there were of its name before.
    pub fn new(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<(Mutex<Vec<Request>>, Condvar)> = Arc::default();
        let (shared, answer): (_, Arc<Answer>) = (requests.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (shared, answer) = (shared.clone(), answer.clone());
                std::thread::spawn(move || serve(connection, &shared, &*answer));
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.0.lock().unwrap().clone()
    }

    pub fn named(&self, name: &str) -> Vec<Request> {
        self.requests()
            .into_iter()
            .filter(|r| r.name() == name)
            .collect()
    }

    /// Waits for a number of requests of a name.
    pub fn wait_for(&self, name: &str, count: usize) {
        let (requests, changed) = &*self.requests;
        let until = Instant::now() + PATIENCE;
        let mut held = requests.lock().unwrap();
        while held.iter().filter(|r| r.name() == name).count() < count {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {name}");
            held = changed.wait_timeout(held, left).unwrap().0;
        }
    }
}

fn serve(connection: TcpStream, shared: &(Mutex<Vec<Request>>, Condvar), answer: &Answer) {
    let mut reader = BufReader::new(connection);
    let Some(request) = read(&mut reader) else {
        return;
    };
    let before = {
        let mut held = shared.0.lock().unwrap();
        let before = held.iter().filter(|r| r.name() == request.name()).count();
        held.push(request.clone());
        shared.1.notify_all();
        before
    };
    let reply = answer(&request, before);
    if reply.silent {
        return;
    }
    let length = reply.length.unwrap_or(reply.body.len());
    let mut head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {length}\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut connection = reader.into_inner();
    let _ = connection.write_all(format!("{head}\r\n").as_bytes());
    let _ = connection.write_all(&reply.body);
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        at: Instant::now(),
        method,
        target,
        headers,
        body,
    })
}
