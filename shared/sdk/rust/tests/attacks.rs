//! Attacks on the client: by its arguments, by a hostile server, by logs. Those on workers and
//! webhooks are in their tests.
#![cfg(feature = "client")]

mod support;

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use sortie_worker::client::{Client, Error, ErrorKind, EventQuery, Method, RunQuery};
use sortie_worker::models::{EventTicket, Secret};
use support::{Reply, Server};

const TOKEN: &str = "secret-token";

fn client(server: &Server) -> Client {
    Client::builder()
        .url(&server.url)
        .token(TOKEN)
        .retries(0)
        .build()
        .unwrap()
}

fn secretive(text: &str) {
    assert!(!text.contains("secret-"), "{text}");
}

type Attack = fn() -> Pin<Box<dyn Future<Output = ()>>>;

#[tokio::test]
async fn attacks_fail() {
    let rows: [(&str, Attack); 15] = [
        ("token in Debug", || Box::pin(token_in_debug())),
        ("secrets in a URL", || Box::pin(secrets_in_urls())),
        ("secrets in errors", || Box::pin(secrets_in_errors())),
        ("redirect of a call", || Box::pin(redirect_of_a_call())),
        ("redirect of a download", || {
            Box::pin(redirect_of_a_download())
        }),
        ("redirect to a file", || Box::pin(redirect_to_a_file())),
        ("ids that change the path", || {
            Box::pin(ids_that_change_the_path())
        }),
        (
            "paths to another host",
            || Box::pin(paths_to_another_host()),
        ),
        ("header injection", || Box::pin(header_injection())),
        ("cursor that is no header", || {
            Box::pin(cursor_that_is_no_header())
        }),
        ("endless answer", || Box::pin(endless_answer())),
        ("endless line of a log", || Box::pin(endless_line())),
        ("large download", || Box::pin(large_download())),
        ("deep JSON", || Box::pin(deep_json())),
        ("long waits", || Box::pin(long_waits())),
    ];
    for (name, attack) in rows {
        println!("{name}");
        attack().await;
    }
}

async fn token_in_debug() {
    let builder = Client::builder().token(TOKEN);
    secretive(&format!("{builder:?}"));
    let client = builder.build().unwrap();
    secretive(&format!(
        "{client:?} {:?} {:?}",
        client.runs(),
        client.events()
    ));
    let ticket = EventTicket {
        ticket: Secret("secret-ticket".into()),
        ..Default::default()
    };
    secretive(&format!("{ticket:?}"));
    assert_eq!(
        serde_json::to_value(&ticket).unwrap()["ticket"],
        "secret-ticket"
    );
}

async fn secrets_in_urls() {
    for url in [
        "http://secret-user@127.0.0.1",
        "http://u:secret-password@127.0.0.1",
        "http://127.0.0.1/?token=secret-query",
        "http://127.0.0.1/#secret-fragment",
        "secret-scheme:x",
        "file:///secret-file",
    ] {
        let error = Client::builder().url(url).build().unwrap_err();
        secretive(&format!("{error} {error:?}"));
    }
    let error = Client::builder()
        .token("secret- token\n")
        .build()
        .unwrap_err();
    secretive(&format!("{error} {error:?}"));
}

async fn secrets_in_errors() {
    let gone = Client::builder()
        .url("http://127.0.0.1:1")
        .token(TOKEN)
        .retries(0)
        .build()
        .unwrap();
    let error = gone
        .call(Method::GET, "/v1/events?ticket=secret-ticket", None)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error}");
    secretive(&format!("{error} {error:?}"));
    let server = Server::new(|_, _| Reply::new(200, "no JSON"));
    let error = client(&server)
        .call(Method::GET, "/x?ticket=secret-ticket", None)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
    secretive(&format!("{error} {error:?}"));
}

async fn redirect_of_a_call() {
    let other = Server::new(|_, _| Reply::json(json!({})));
    for status in [301, 302, 303, 307, 308] {
        let to = format!("{}/stolen", other.url);
        let server = Server::new(move |_, _| Reply::new(status, "").with("location", &to));
        let error = client(&server)
            .runs()
            .create(&Default::default())
            .await
            .unwrap_err();
        assert_eq!(error.api().unwrap().kind(), ErrorKind::Redirect, "{status}");
        let mut stream = client(&server).events().stream(&EventQuery::default());
        assert!(stream.next().await.unwrap().is_err(), "{status}");
    }
    assert!(other.requests().is_empty());
}

async fn redirect_of_a_download() {
    let bucket = Server::new(|_, _| Reply::new(200, "content").with("etag", "e"));
    let to = format!("{}/object?signature=secret-signature", bucket.url);
    let server = Server::new(move |_, _| Reply::new(302, "").with("location", &to));
    let download = client(&server).runs().output("t").await.unwrap();
    secretive(&format!("{download:?}"));
    assert_eq!(download.bytes(100).await.unwrap(), b"content");
    assert_eq!(bucket.requests()[0].header("authorization"), None);
    // A bucket that refuses, or sends on, is an error without its URL.
    for status in [403, 302] {
        let bucket = Server::new(move |_, _| Reply::new(status, "").with("location", "/again"));
        let to = format!("{}/object?signature=secret-signature", bucket.url);
        let server = Server::new(move |_, _| Reply::new(302, "").with("location", &to));
        let error = client(&server).runs().output("t").await.unwrap_err();
        secretive(&format!("{error} {error:?}"));
        assert_eq!(bucket.requests().len(), 1);
    }
}

async fn redirect_to_a_file() {
    for to in [
        "file:///etc/passwd",
        "",
        "http://",
        "data:text/plain,x",
        "ftp://127.0.0.1/x",
    ] {
        let server = Server::new(move |_, _| Reply::new(302, "").with("location", to));
        let error = client(&server).runs().output("t").await.unwrap_err();
        assert!(matches!(error, Error::Malformed(_)), "{to}: {error}");
    }
}

async fn ids_that_change_the_path() {
    let server = Server::new(|_, _| Reply::json(json!({})));
    let client = client(&server);
    for id in ["", ".", ".."] {
        assert!(
            matches!(client.runs().get(id).await, Err(Error::Invalid(_))),
            "{id}"
        );
        assert!(
            matches!(client.runs().output(id).await, Err(Error::Invalid(_))),
            "{id}"
        );
        assert!(
            client.runs().follow_logs(id).next().await.unwrap().is_err(),
            "{id}"
        );
        assert!(
            client.runs().updates(id, 0).next().await.unwrap().is_err(),
            "{id}"
        );
    }
    assert!(server.requests().is_empty());
    for (id, want) in [
        ("a/b", "a%2Fb"),
        ("../../v1/pools/x", "..%2F..%2Fv1%2Fpools%2Fx"),
        ("a?b#c", "a%3Fb%23c"),
        ("a%2fb", "a%252fb"),
        ("a\r\nb", "a%0D%0Ab"),
        ("\u{e9} ", "%C3%A9%20"),
        ("nightly:20260102T020000Z", "nightly:20260102T020000Z"),
    ] {
        client.runs().cancel(id, None).await.unwrap();
        let target = server.requests().last().unwrap().target.clone();
        assert_eq!(target, format!("/v1/runs/{want}/cancel"), "{id}");
    }
}

async fn paths_to_another_host() {
    let server = Server::new(|_, _| Reply::json(json!({})));
    let client = client(&server);
    for path in [
        "x",
        "",
        "@127.0.0.1:1/x",
        "http://127.0.0.1:1/x",
        ".127.0.0.1/x",
    ] {
        let called = client.call(Method::GET, path, None).await;
        assert!(matches!(called, Err(Error::Invalid(_))), "{path}");
    }
    assert!(server.requests().is_empty());
    for path in ["//127.0.0.1:1/x", "/@127.0.0.1:1", "/\\127.0.0.1:1"] {
        client.call(Method::GET, path, None).await.unwrap();
    }
    assert_eq!(server.requests().len(), 3);
}

async fn header_injection() {
    let server = Server::new(|_, _| Reply::json(json!({})));
    for key in [
        "",
        " ",
        "a\r\nx-admin: 1",
        "a\0",
        "\u{e9}",
        &"k".repeat(256),
    ] {
        let created = client(&server)
            .runs()
            .create_keyed(&Default::default(), key)
            .await;
        assert!(matches!(created, Err(Error::Invalid(_))), "{key:?}");
    }
    for token in ["a\r\nx-admin: 1", "a b", "", "\u{e9}"] {
        assert!(Client::builder().token(token).build().is_err(), "{token:?}");
    }
    assert!(server.requests().is_empty());
    let query = EventQuery {
        types: vec!["a&after=latest".into(), "b\r\nx: y".into()],
        ..Default::default()
    };
    assert!(client(&server).events().list(&query).next().await.is_none());
    assert_eq!(
        server.requests()[0].target,
        "/v1/events?types=a%26after%3Dlatest,b%0D%0Ax%3A%20y".replace("%3A", ":")
    );
}

async fn cursor_that_is_no_header() {
    let server = Server::new(|_, _| Reply::new(200, "retry: 1\nid: a\u{7f}b\ndata: {}\n\n"));
    let mut stream = client(&server).events().stream(&EventQuery::default());
    assert!(stream.next().await.unwrap().is_ok());
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

async fn endless_answer() {
    let server = Server::new(|_, _| Reply::new(200, vec![b' '; 65 << 20]));
    let error = client(&server)
        .runs()
        .list(&RunQuery::default())
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
    let server = Server::new(|_, _| Reply::new(400, vec![b' '; 8 << 20]));
    let error = client(&server).runs().get("r").await.unwrap_err();
    assert_eq!(error.api().unwrap().status, 400);
}

async fn endless_line() {
    let server = Server::new(|_, _| Reply::new(200, vec![b'x'; 3 << 20]));
    let error = client(&server)
        .runs()
        .follow_logs("t")
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error}");
}

async fn large_download() {
    let server = Server::new(|_, _| Reply::new(200, vec![b'x'; 1 << 20]));
    let error = client(&server)
        .runs()
        .output("t")
        .await
        .unwrap()
        .bytes(1000)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

async fn deep_json() {
    let deep = |n: usize| format!("{{\"x\":{}{}}}", "[".repeat(n), "]".repeat(n));
    let server = Server::new(move |_, _| Reply::new(200, deep(100_000)));
    let got: Result<Value, Error> = client(&server).call(Method::GET, "/x", None).await;
    assert!(matches!(got, Err(Error::Malformed(_))));
    assert!(matches!(
        client(&server).runs().get("r").await,
        Err(Error::Malformed(_))
    ));
    let server =
        Server::new(move |_, _| Reply::new(200, format!("id: 1\ndata: {}\n\n", deep(100_000))));
    let mut stream = client(&server).events().stream(&EventQuery::default());
    assert!(matches!(
        stream.next().await,
        Some(Err(Error::Malformed(_)))
    ));
}

async fn long_waits() {
    let begun = Instant::now();
    let server = Server::new(|_, _| Reply::problem(429, "THROTTLED").with("retry-after", "1e18"));
    let client = Client::builder()
        .url(&server.url)
        .retries(5)
        .build()
        .unwrap();
    assert!(client.runs().get("r").await.is_err());
    let server =
        Server::new(|_, _| Reply::problem(503, "UNAVAILABLE").with("retry-after", "86400"));
    let client = Client::builder()
        .url(&server.url)
        .retries(5)
        .build()
        .unwrap();
    assert_eq!(
        client.runs().get("r").await.unwrap_err().code(),
        Some("UNAVAILABLE")
    );
    assert!(client.runs().output("t").await.is_err());
    let query = EventQuery {
        most_outage: Some(Duration::from_millis(10)),
        ..Default::default()
    };
    let server = Server::new(|_, before| match before {
        0 => Reply::new(200, "retry: 999999999999\n\n"),
        _ => Reply::new(204, ""),
    });
    let client = Client::builder().url(&server.url).build().unwrap();
    assert!(client.events().stream(&query).next().await.is_none());
    assert!(begun.elapsed() < Duration::from_secs(30));
}
