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

-- Transaction mode asks for the lock of a key, then reads the key: two statements, so that at READ
-- COMMITTED the second sees what the last holder of the lock has committed. A function takes one
-- message, and its statements are planned once a session.
CREATE FUNCTION idempotent_enter(
    hash BYTEA, lock BIGINT,
    OUT now BIGINT, OUT request_id BYTEA, OUT status SMALLINT, OUT fence BIGINT, OUT attempt BIGINT,
    OUT fingerprint BYTEA, OUT checkpoint BOOLEAN, OUT lease_until BIGINT, OUT response_data BYTEA,
    OUT expire_at BIGINT, OUT record BYTEA, OUT is_held BOOLEAN, OUT sees_all BOOLEAN
) LANGUAGE plpgsql AS $$
BEGIN
    is_held := pg_try_advisory_xact_lock(lock);
    sees_all := current_setting('transaction_isolation') IN ('read committed', 'read uncommitted');
    SELECT found.request_id, found.status, found.fence, found.attempt, found.fingerprint,
        found.checkpoint, found.lease_until, found.response_data, found.expire_at, found.record
    INTO request_id, status, fence, attempt, fingerprint,
        checkpoint, lease_until, response_data, expire_at, record
    FROM idempotent_record AS found WHERE found.key_hash = hash;
    now := extract(epoch FROM clock_timestamp()) * 1000000;
END $$;

CREATE TABLE idempotent_record_version (version BIGINT NOT NULL PRIMARY KEY);
INSERT INTO idempotent_record_version (version) VALUES (1);
