-- Transaction mode asks for the lock of a key, then reads the key: two statements, so that at READ
-- COMMITTED the second sees what the last holder of the lock has committed. A function takes one
-- message, and its statements are planned once a session. It gives one text, so that there is hardly
-- anything to plan in what calls it. A migration never replaces one that is there: whoever changes it
-- gives it the next number.
CREATE OR REPLACE FUNCTION idempotent_enter_2(hash BYTEA, lock BIGINT) RETURNS TEXT
LANGUAGE plpgsql AS $$
DECLARE
    is_held BOOLEAN := pg_try_advisory_xact_lock(lock);
    sees_all BOOLEAN :=
        current_setting('transaction_isolation') IN ('read committed', 'read uncommitted');
    row_text TEXT;
BEGIN
    SELECT ROW(encode(request_id, 'hex'), status, fence, attempt, encode(fingerprint, 'hex'),
        checkpoint, lease_until, encode(response_data, 'hex'), expire_at, encode(record, 'hex'))
    INTO row_text
    FROM idempotent_record WHERE key_hash = hash;
    RETURN concat_ws(' ', (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT,
        encode(timestamptz_send(transaction_timestamp()), 'hex'), is_held, sees_all, row_text);
END $$;
