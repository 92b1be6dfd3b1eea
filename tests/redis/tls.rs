//! Encrypted connections, and certificates that are really checked.

use std::fs;

use idem_core::StoreErrorKind;
use idem_core::store::Store;
use idem_core::store::redis::RedisBuilder;
use idem_tests::redis::RedisOptions;
use idem_tests::tls::TlsRedis;

use crate::attempt::{first_call, order};

#[tokio::test]
async fn a_server_with_a_certificate_of_a_known_authority_is_used() {
    let server = TlsRedis::start(RedisOptions::new().password("secret")).unwrap();
    let url = server.url().replace("rediss://", "rediss://:secret@");
    let store = RedisBuilder::server(url)
        .certificate_authority(fs::read(server.ca()).unwrap())
        .connect()
        .await
        .unwrap();
    first_call(&store, 1, store.now().await.unwrap()).await;
    let mut watch = store.watch(&order(1)).await.unwrap();
    let channel = format!("idem:wake:{}", order(1).as_str());
    server
        .server()
        .cli(&["PUBLISH", channel.as_str(), ""])
        .unwrap();
    watch.changed().await;
}

#[tokio::test]
async fn a_stranger_s_certificate_another_name_and_no_authority_are_refused() {
    let server = TlsRedis::start(RedisOptions::new()).unwrap();
    let pem = |path| fs::read(path).unwrap();
    let refused = [
        RedisBuilder::server(server.url()).certificate_authority(pem(server.stranger_ca())),
        RedisBuilder::server(server.url_other_name()).certificate_authority(pem(server.ca())),
        RedisBuilder::server(server.url()),
    ];
    for builder in refused {
        let error = builder.connect().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        let told = error.to_string().to_lowercase();
        assert!(told.contains("certificate"), "{told}");
    }
    let insecure = format!("{}#insecure", server.url());
    let error = RedisBuilder::server(insecure).connect().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    let plain = server.url().replace("rediss://", "redis://");
    let begin = std::time::Instant::now();
    RedisBuilder::server(plain).connect().await.unwrap_err();
    assert!(begin.elapsed() < std::time::Duration::from_secs(3));
}

#[tokio::test]
async fn an_authority_that_is_no_certificate_is_refused_at_once() {
    let builder = RedisBuilder::server("rediss://localhost/").certificate_authority("no pem");
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}
