CREATE TABLE idempotent_record (
    key_hash      BYTEA    NOT NULL PRIMARY KEY CHECK (octet_length(key_hash) = 32),
    business_type VARCHAR(200) COLLATE "C" NOT NULL,
    business_key  VARCHAR(200) COLLATE "C" NOT NULL,
    request_id    BYTEA    NOT NULL,
    status        SMALLINT NOT NULL,
    fence         BIGINT   NOT NULL,
    attempt       BIGINT   NOT NULL,
    fingerprint   BYTEA,
    checkpoint    BOOLEAN  NOT NULL,
    lease_until   BIGINT,
    response_data BYTEA,
    expire_at     BIGINT   NOT NULL,
    record        BYTEA    NOT NULL,
    create_time   BIGINT   NOT NULL,
    update_time   BIGINT   NOT NULL
);

CREATE INDEX idempotent_record_by_key ON idempotent_record (business_type, business_key);
CREATE INDEX idempotent_record_by_end ON idempotent_record (expire_at);

CREATE TABLE idempotent_record_version (version BIGINT NOT NULL PRIMARY KEY);
INSERT INTO idempotent_record_version (version) VALUES (1);
