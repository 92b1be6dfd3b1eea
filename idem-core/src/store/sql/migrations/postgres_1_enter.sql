-- Transaction mode asks for the lock of a key, then reads the key: two statements, so that at READ
-- COMMITTED the second sees what the last holder of the lock has committed. A function takes one
-- message, and its statements are planned once a session. What it gives can not be changed by
-- replacing it, so a function that gives something else gets another number.
CREATE OR REPLACE FUNCTION idempotent_enter_1(
    hash BYTEA, lock BIGINT,
    OUT now BIGINT, OUT request_id BYTEA, OUT status SMALLINT, OUT fence BIGINT, OUT attempt BIGINT,
    OUT fingerprint BYTEA, OUT checkpoint BOOLEAN, OUT lease_until BIGINT, OUT response_data BYTEA,
    OUT expire_at BIGINT, OUT record BYTEA, OUT is_held BOOLEAN, OUT sees_all BOOLEAN,
    OUT began BIGINT
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
    began := extract(epoch FROM transaction_timestamp()) * 1000000;
END $$;
