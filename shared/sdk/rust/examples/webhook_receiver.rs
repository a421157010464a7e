//! A receiver of webhooks: prints the type of each event that has a valid signature, once.
//!
//! WEBHOOK_SECRET is the secret, or several with commas between them. PORT is the port.
//!
//! It reads HTTP itself, so that the example needs no other crate. A service gives the body and
//! the headers of its framework to the verifier.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sortie_worker::webhooks::Verifier;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

const MOST_HEAD: u64 = 16 << 10;
const MOST_BODY: usize = 64 << 10;

type Seen = Arc<Mutex<HashSet<String>>>; // a real receiver stores it with what it did

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secrets = std::env::var("WEBHOOK_SECRET")?;
    let verifier = Verifier::new(secrets.split(','))?;
    let port: u16 = std::env::var("PORT")
        .unwrap_or_else(|_| "9000".into())
        .parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on port {}", listener.local_addr()?.port());
    let seen = Seen::default();
    loop {
        let (connection, _) = listener.accept().await?;
        let (verifier, seen) = (verifier.clone(), seen.clone());
        tokio::spawn(async move {
            let answering = answer(connection, &verifier, &seen);
            let _ = tokio::time::timeout(Duration::from_secs(10), answering).await;
        });
    }
}

async fn answer(connection: TcpStream, verifier: &Verifier, seen: &Seen) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let status = receive(&mut reader, verifier, seen).await?;
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).await?;
    reader.get_mut().shutdown().await
}

async fn receive(
    reader: &mut BufReader<TcpStream>,
    verifier: &Verifier,
    seen: &Seen,
) -> std::io::Result<&'static str> {
    let mut head = (&mut *reader).take(MOST_HEAD);
    let mut line = String::new();
    head.read_line(&mut line).await?;
    if !line.starts_with("POST ") {
        return Ok("405 Method Not Allowed");
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if head.read_line(&mut line).await? == 0 {
            return Ok("431 Request Header Fields Too Large");
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let Some(length) = length.and_then(|(_, value)| value.parse::<usize>().ok()) else {
        return Ok("411 Length Required");
    };
    if length > MOST_BODY {
        return Ok("413 Content Too Large");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    let pairs = headers.iter().map(|(name, value)| (name, value.as_bytes()));
    let Ok(event) = verifier.verify(&body, pairs) else {
        return Ok("401 Unauthorized");
    };
    let new = seen
        .lock()
        .is_ok_and(|mut seen| seen.insert(event.event_id.clone()));
    if new {
        println!("{} {}", event.event_type, event.event_id);
    }
    Ok("204 No Content")
}
