//! Webhooks: what is accepted, and attacks.
#![cfg(feature = "webhooks")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sortie_worker::webhooks::{sign, Refused, Verifier};

const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
const OTHER: &str = "whsec_b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcg==";
const BODY: &[u8] = br#"{"eventId": "urn:orch:event:1", "eventType": "job.completed", "x": 1}"#;
const ID: &str = "urn:orch:event:1";
const NOW: u64 = 1_767_323_045;

/// A name, the id, the timestamp, the signatures, the body, and why they are refused.
type Row<'a> = (&'a str, &'a str, String, String, &'a [u8], Refused);

fn signed(secret: &str, seconds: u64, body: &[u8]) -> String {
    sign(secret, ID, seconds, body).unwrap()
}

fn verify(verifier: &Verifier, headers: &[(&str, &str)], body: &[u8]) -> Result<String, Refused> {
    let at: SystemTime = UNIX_EPOCH + Duration::from_secs(NOW);
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    verifier
        .verify_at(body, headers, at)
        .map(|event| event.event_type)
}

#[test]
fn the_standard_has_the_same_signature() {
    // From the specification of Standard Webhooks.
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = br#"{"test": 2432232314}"#;
    let signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body).unwrap();
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn valid_webhooks_are_accepted() {
    let verifier = Verifier::new([SECRET]).unwrap();
    let both = Verifier::new([OTHER, SECRET]).unwrap();
    let signature = signed(SECRET, NOW, BODY);
    let rotated = format!("v1,AAAA v1a,x {signature}");
    let now = NOW.to_string();
    for (name, verifier, signature) in [
        ("one", &verifier, &signature),
        ("second secret", &both, &signature),
        ("several signatures", &verifier, &rotated),
    ] {
        let headers = [
            ("webhook-ID", ID),
            ("WEBHOOK-timestamp", now.as_str()),
            ("webhook-signature", signature),
        ];
        assert_eq!(
            verify(verifier, &headers, BODY).as_deref(),
            Ok("job.completed"),
            "{name}"
        );
    }
}

#[test]
fn attacks_are_refused() {
    let verifier = Verifier::new([SECRET]).unwrap();
    let good = signed(SECRET, NOW, BODY);
    let (old, new) = (NOW - 301, NOW + 301);
    let many = format!("{}{good}", "v1,AAAA ".repeat(1000));
    let list = [0xff, 0xfe];
    let array = b"[1]".as_slice();
    let rows: [Row; 13] = [
        (
            "another secret",
            ID,
            NOW.to_string(),
            signed(OTHER, NOW, BODY),
            BODY,
            Refused::Signature,
        ),
        (
            "another body",
            ID,
            NOW.to_string(),
            good.clone(),
            b"{}",
            Refused::Signature,
        ),
        (
            "another id",
            "urn:orch:event:2",
            NOW.to_string(),
            good.clone(),
            BODY,
            Refused::Signature,
        ),
        (
            "another time",
            ID,
            (NOW - 1).to_string(),
            good.clone(),
            BODY,
            Refused::Signature,
        ),
        (
            "too old",
            ID,
            old.to_string(),
            signed(SECRET, old, BODY),
            BODY,
            Refused::Age,
        ),
        (
            "too new",
            ID,
            new.to_string(),
            signed(SECRET, new, BODY),
            BODY,
            Refused::Age,
        ),
        (
            "a sign",
            ID,
            format!("+{NOW}"),
            good.clone(),
            BODY,
            Refused::Headers("Webhook-Timestamp"),
        ),
        (
            "long time",
            ID,
            "9".repeat(40),
            good.clone(),
            BODY,
            Refused::Headers("Webhook-Timestamp"),
        ),
        (
            "another version",
            ID,
            NOW.to_string(),
            good.replace("v1,", "v2,"),
            BODY,
            Refused::Signature,
        ),
        (
            "no base64",
            ID,
            NOW.to_string(),
            "v1,!!".into(),
            BODY,
            Refused::Signature,
        ),
        (
            "cut signature",
            ID,
            NOW.to_string(),
            good[..good.len() - 4].into(),
            BODY,
            Refused::Signature,
        ),
        (
            "too many signatures",
            ID,
            NOW.to_string(),
            many,
            BODY,
            Refused::Signature,
        ),
        (
            "no event",
            ID,
            NOW.to_string(),
            signed(SECRET, NOW, array),
            array,
            Refused::Body,
        ),
    ];
    for (name, id, time, signature, body, want) in &rows {
        let headers = [
            ("Webhook-Id", *id),
            ("Webhook-Timestamp", time),
            ("Webhook-Signature", signature),
        ];
        assert_eq!(
            verify(&verifier, &headers, body),
            Err(want.clone()),
            "{name}"
        );
        assert!(!want.to_string().contains(&SECRET[6..]), "{name}");
    }
    let now = NOW.to_string();
    let headers = [
        ("Webhook-Id", ID),
        ("Webhook-Timestamp", &now),
        ("Webhook-Signature", &good),
    ];
    for missing in 0..3 {
        let mut rest = headers.to_vec();
        rest.remove(missing);
        assert!(
            verify(&verifier, &rest, BODY).is_err(),
            "without {}",
            headers[missing].0
        );
        let twice: Vec<_> = headers.iter().chain([&headers[missing]]).copied().collect();
        let error = verify(&verifier, &twice, BODY).unwrap_err();
        assert!(
            matches!(error, Refused::Headers(_)),
            "twice {}: {error}",
            headers[missing].0
        );
    }
    let binary = [("Webhook-Id", list.as_slice())];
    assert!(verifier.verify(BODY, binary).is_err());
}

#[test]
fn malformed_secrets_are_refused_and_not_shown() {
    for secret in ["", "whsec_", "whsec_not base64", "whsec_QQ"] {
        let error = Verifier::new([secret]).unwrap_err();
        assert_eq!(error, Refused::Secret, "{secret}");
        assert!(!error.to_string().contains("QQ"));
    }
    assert_eq!(
        Verifier::new(Vec::<String>::new()).unwrap_err(),
        Refused::Secret
    );
    assert_eq!(
        format!("{:?}", Verifier::new([SECRET]).unwrap()),
        "Verifier(1 secrets)"
    );
}
