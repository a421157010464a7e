//! The models against the OpenAPI document.
#![cfg(feature = "client")]

#[path = "generated/mod.rs"]
mod generate;

/// Makes the function that decodes and encodes an object of a type by its name, and the names.
macro_rules! trips {
    ($($name:ident,)*) => {
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        pub fn of(name: &str, value: &serde_json::Value) -> super::Trip {
            match name {
                $(stringify!($name) => super::round_trip(value, |model: &sortie_worker::models::$name| model.extra.len()),)*
                _ => panic!("no model {name}"),
            }
        }
    };
}
use trips;

#[path = "generated/trips.rs"]
mod trips_of;

use serde::{de::DeserializeOwned, Serialize};
use serde_json::{json, Map, Value};

/// What decoding and encoding gives.
pub struct Trip {
    encoded: Value,
    unknown: usize,
}

fn round_trip<M: DeserializeOwned + Serialize>(value: &Value, extra: impl Fn(&M) -> usize) -> Trip {
    let model: M = serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}: {value}"));
    Trip {
        encoded: serde_json::to_value(&model).unwrap(),
        unknown: extra(&model),
    }
}

/// SORTIE_REWRITE=1 writes the files.
#[test]
fn generated_files_are_fresh() {
    let (models, tests) = generate::generate(&generate::document());
    let mut files = vec![
        ("src/models/generated.rs", models),
        ("tests/generated/trips.rs", tests),
    ];
    files.push((
        "tests/generated/generated.sum",
        generate::sums::digests(&files),
    ));
    for (path, want) in files {
        // As it is now: what was compiled may be of a folder that no longer exists.
        let path = format!("{}/{path}", std::env::var("CARGO_MANIFEST_DIR").unwrap());
        if std::env::var_os("SORTIE_REWRITE").is_some() {
            std::fs::write(&path, &want).unwrap();
        }
        let got = std::fs::read_to_string(&path).unwrap();
        assert!(got == want, "{path} is stale: run with SORTIE_REWRITE=1");
    }
}

/// Returns a value with all members of a schema, and the members that it does not define.
fn sample(schemas: &Map<String, Value>, schema: &Value, unknown: bool, depth: u32) -> Value {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.rsplit('/').next().unwrap();
        return sample(schemas, &schemas[name], unknown, depth);
    }
    assert!(depth < 20, "the schema contains itself");
    let (properties, _) = generate::flat(schemas, schema);
    if !properties.is_empty() {
        let mut object: Map<String, Value> = properties
            .iter()
            .map(|(name, inner)| (name.clone(), sample(schemas, inner, unknown, depth + 1)))
            .collect();
        if unknown {
            object.insert("x-new".into(), json!({"a": [1, null]}));
        }
        return Value::Object(object);
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return if unknown {
            json!("something_new")
        } else {
            values[0].clone()
        };
    }
    if let Some(parts) = schema["allOf"]
        .as_array()
        .or(schema["anyOf"].as_array())
        .or(schema["oneOf"].as_array())
    {
        return sample(schemas, &parts[0], unknown, depth + 1);
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") if schema["format"] == "date-time" => {
            json!("2026-01-02T03:04:05.123456789+01:00")
        }
        Some("string") => json!("text"),
        Some("integer") => json!(7),
        Some("number") => json!(1.5),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(schemas, &schema["items"], unknown, depth + 1)]),
        Some("object") => match &schema["additionalProperties"] {
            Value::Object(_) => {
                json!({"key": sample(schemas, &schema["additionalProperties"], unknown, depth + 1)})
            }
            _ => json!({"any": {"thing": 1}}),
        },
        _ => json!({"free": [1, "x"]}),
    }
}

/// Returns the models of schemas with a name.
fn names(document: &Value) -> Vec<&'static str> {
    let named = |name: &&str| document["components"]["schemas"].get(*name).is_some();
    trips_of::NAMES.iter().copied().filter(named).collect()
}

#[test]
fn every_member_of_a_schema_is_known_and_survives() {
    let document = generate::document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let names = names(&document);
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let value = sample(schemas, &schemas[name], false, 0);
        let trip = trips_of::of(name, &value);
        assert_eq!(trip.unknown, 0, "{name}");
        assert_eq!(trip.encoded, value, "{name}");
    }
}

#[test]
fn unknown_members_and_values_survive() {
    let document = generate::document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in names(&document) {
        let value = sample(schemas, &schemas[name], true, 0);
        let trip = trips_of::of(name, &value);
        assert_eq!(trip.unknown, 1, "{name}");
        assert_eq!(trip.encoded, value, "{name}");
    }
}

#[test]
fn examples_of_the_document_survive() {
    let document = generate::document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut count = 0;
    for name in names(&document) {
        for example in schemas[name]["examples"].as_array().into_iter().flatten() {
            assert_eq!(trips_of::of(name, example).encoded, *example, "{name}");
            count += 1;
        }
    }
    assert!(count > 3, "{count} examples");
}

#[test]
fn empty_objects_are_read() {
    let document = generate::document();
    for name in names(&document) {
        assert_eq!(trips_of::of(name, &json!({})).unknown, 0, "{name}");
    }
}
