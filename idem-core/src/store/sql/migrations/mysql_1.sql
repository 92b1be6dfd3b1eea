-- The server commits each statement by itself, so each can be run again after a crash; the version
-- comes last. The index by key is too long for rows in the compact format.
CREATE TABLE IF NOT EXISTS idempotent_record_version (
    version BIGINT NOT NULL PRIMARY KEY
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS idempotent_record (
    key_hash      BINARY(32)   NOT NULL PRIMARY KEY,
    business_type VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    business_key  VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    request_id    VARBINARY(16) NOT NULL,
    status        SMALLINT     NOT NULL,
    fence         BIGINT       NOT NULL,
    attempt       BIGINT       NOT NULL,
    fingerprint   VARBINARY(16),
    checkpoint    BOOLEAN      NOT NULL,
    lease_until   BIGINT,
    response_data LONGBLOB,
    expire_at     BIGINT       NOT NULL,
    record        VARBINARY(255) NOT NULL,
    create_time   BIGINT       NOT NULL,
    update_time   BIGINT       NOT NULL,
    INDEX idempotent_record_by_key (business_type, business_key),
    INDEX idempotent_record_by_end (expire_at)
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

INSERT INTO idempotent_record_version (version) VALUES (1);
