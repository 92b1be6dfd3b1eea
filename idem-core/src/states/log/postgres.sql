-- One transaction: of two who create it at once, one waits for the other.
SELECT pg_advisory_xact_lock(7521983640214873);

CREATE TABLE IF NOT EXISTS {log} (
    entity      TEXT COLLATE "C" NOT NULL,
    entity_id   TEXT COLLATE "C" NOT NULL,
    event       TEXT COLLATE "C" NOT NULL,
    from_status SMALLINT         NOT NULL,
    to_status   SMALLINT         NOT NULL,
    version     BIGINT           NOT NULL,
    create_time TIMESTAMPTZ      NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (entity, entity_id, event)
);
