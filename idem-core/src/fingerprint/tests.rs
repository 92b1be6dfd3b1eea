use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Serialize, Serializer};
use serde_json::json;

use super::Fingerprint;

fn of(payload: &(impl Serialize + ?Sized)) -> Fingerprint {
    Fingerprint::of(payload).unwrap()
}

fn hex(payload: &(impl Serialize + ?Sized)) -> String {
    format!("{:032x}", u128::from_be_bytes(*of(payload).as_bytes()))
}

#[derive(Serialize)]
struct Pay {
    shop: u32,
    amount: i64,
    note: Option<String>,
}

#[derive(Serialize)]
enum Method {
    Cash,
    Card(String),
    Split(u8, u8),
    Transfer { iban: String, bic: u8 },
}

#[derive(Serialize)]
struct Tags(HashSet<String>);

fn many_sets() -> [HashSet<String>; 2] {
    let forward = (0..100).map(|n| n.to_string()).collect();
    let backward = (0..100).rev().map(|n| n.to_string()).collect();
    [forward, backward]
}

// K10
#[test]
fn maps_and_sets_of_any_order_are_equal() {
    let maps = [(0..100).collect::<Vec<_>>(), (0..100).rev().collect()].map(|keys| {
        keys.into_iter()
            .map(|key| (key.to_string(), key))
            .collect::<HashMap<_, _>>()
    });
    assert_eq!(of(&maps[0]), of(&maps[1]));
    assert_eq!(
        of(&maps[0]),
        of(&maps[0].clone().into_iter().collect::<BTreeMap<_, _>>())
    );

    let [one, other] = many_sets();
    assert_eq!(of(&one), of(&other));
    assert_eq!(of(&&Box::new(&Box::new(one.clone()))), of(&other));
    assert_eq!(of(&(1, Some(&one))), of(&(1, Some(&other))));
    assert_eq!(of(&vec![one.clone()]), of(std::slice::from_ref(&other)));
    assert_eq!(of(&Tags(one)), of(&Tags(other)));
}

#[test]
fn the_order_of_a_json_object_does_not_matter() {
    let one: serde_json::Value =
        serde_json::from_str(r#"{"a":1,"b":{"x":[1,2],"y":null}}"#).unwrap();
    let other: serde_json::Value =
        serde_json::from_str(r#"{"b":{"y":null,"x":[1,2]},"a":1}"#).unwrap();
    assert_eq!(of(&one), of(&other));
    assert_ne!(of(&one), of(&json!({"a":1,"b":{"x":[2,1],"y":null}})));
}

#[test]
fn a_struct_equals_the_map_with_its_content() {
    let pay = Pay {
        shop: 7,
        amount: -5,
        note: None,
    };
    assert_eq!(
        of(&pay),
        of(&json!({"note": null, "amount": -5, "shop": 7}))
    );
    let pay = Pay {
        note: Some("x".into()),
        ..pay
    };
    assert_eq!(of(&pay), of(&json!({"note": "x", "amount": -5, "shop": 7})));
    let transfer = Method::Transfer {
        iban: "x".into(),
        bic: 1,
    };
    assert_eq!(
        of(&transfer),
        of(&json!({"Transfer": {"bic": 1, "iban": "x"}}))
    );
    assert_eq!(of(&Method::Split(1, 2)), of(&json!({"Split": [1, 2]})));
    assert_eq!(of(&Method::Card("x".into())), of(&json!({"Card": "x"})));
    assert_eq!(of(&Method::Cash), of("Cash"));
}

#[test]
fn integers_are_equal_by_value_and_floats_by_bits() {
    assert_eq!(of(&5_u8), of(&5_i128));
    assert_eq!(of(&-5_i8), of(&-5_i64));
    assert_ne!(of(&5), of(&-5));
    assert_ne!(of(&256), of(&1));
    assert_eq!(of(&f64::NAN), of(&f64::NAN));
    assert_eq!(of(&1.5_f32), of(&1.5_f64));
    assert_ne!(of(&0.0), of(&-0.0));
    assert_ne!(of(&1.0), of(&1));
}

#[test]
fn different_payloads_differ() {
    let payloads = [
        of(&()),
        of(&Some(())),
        of(&Some(Some(()))),
        of(&false),
        of(&true),
        of(&0),
        of(""),
        of("0"),
        of(&Vec::<u8>::new()),
        of(&[0]),
        of(&[[0]]),
        of(&(0, 0)),
        of(&["ab", "c"]),
        of(&["a", "bc"]),
        of(&HashMap::<u8, u8>::new()),
        of(&HashSet::<u8>::new()),
        of(&[("a", "b")]),
        of(&HashMap::from([("a", "b")])),
        of(&HashSet::from(["a", "b"])),
        of(&"x".repeat(254)),
        of(&"x".repeat(255)),
        of(&"x".repeat(256)),
        of(&Pay {
            shop: 1,
            amount: 2,
            note: None,
        }),
        of(&Pay {
            shop: 2,
            amount: 1,
            note: None,
        }),
        of(&0.5),
        of(&-1),
        of(&u128::MAX),
        of(&i128::MIN),
    ];
    let distinct: HashSet<_> = payloads.iter().collect();
    assert_eq!(distinct.len(), payloads.len());
}

#[test]
fn a_list_of_sets_keeps_its_order() {
    let [first, second] = [HashSet::from([1, 2]), HashSet::from([3])];
    assert_ne!(of(&[&first, &second]), of(&[&second, &first]));
    assert_ne!(of(&(&first, &second)), of(&(&second, &first)));
    assert_ne!(
        of(&vec![first.clone(), second.clone()]),
        of(&vec![second.clone(), first.clone()])
    );
    assert_ne!(
        of(&[first.clone(), second.clone()][..]),
        of(&[second, first][..])
    );
}

#[test]
fn a_list_keeps_its_order() {
    assert_ne!(of(&[1, 2]), of(&[2, 1]));
    assert_eq!(of(&BTreeSet::from([1, 2])), of(&[1, 2]));
}

// Equal in two processes, on every machine, for ever.
#[test]
fn golden_vectors_never_change() {
    let everything = json!({
        "text": "订单", "list": [1, -2, 2.5, true, null], "empty": {}, "long": "x".repeat(300),
        "big": u64::MAX, "nested": {"b": [], "a": "A"},
    });
    assert_eq!(hex(&everything), "45bc7fd68881048bfcf2ee4a71280812");
    assert_eq!(
        hex(&Pay {
            shop: 7,
            amount: -5,
            note: None
        }),
        "8735ebb2cc842c98d055cac73cd966a4"
    );
    assert_eq!(hex(&many_sets()[0]), "7e857a0c87e5a22d258adf8a407354b4");
    assert_eq!(hex(&()), "2d3adedff11b61f14c886e35afa03673");
}

#[test]
fn a_payload_that_can_not_be_serialised_is_an_error() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let error = Fingerprint::of(&(1, Refuses)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid key: the fingerprint can not be taken: no"
    );
}

#[test]
fn bytes_are_read_back_as_written() {
    let fingerprint = of("x");
    assert_eq!(
        Fingerprint::from_bytes(*fingerprint.as_bytes()),
        fingerprint
    );
}
