CREATE TABLE IF NOT EXISTS {log} (
    entity      TEXT    NOT NULL,
    entity_id   TEXT    NOT NULL,
    event       TEXT    NOT NULL,
    from_status INTEGER NOT NULL,
    to_status   INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    create_time TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    PRIMARY KEY (entity, entity_id, event)
) WITHOUT ROWID;
