CREATE TABLE idempotent_record (
    key_hash      BLOB    NOT NULL PRIMARY KEY,
    business_type TEXT    NOT NULL COLLATE BINARY,
    business_key  TEXT    NOT NULL COLLATE BINARY,
    request_id    BLOB    NOT NULL,
    status        INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    fingerprint   BLOB,
    checkpoint    BOOLEAN NOT NULL,
    lease_until   INTEGER,
    response_data BLOB,
    expire_at     INTEGER NOT NULL,
    record        BLOB    NOT NULL,
    create_time   INTEGER NOT NULL,
    update_time   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX idempotent_record_by_key ON idempotent_record (business_type, business_key);
CREATE INDEX idempotent_record_by_end ON idempotent_record (expire_at);

CREATE TABLE idempotent_record_version (version INTEGER NOT NULL PRIMARY KEY);
INSERT INTO idempotent_record_version (version) VALUES (1);
