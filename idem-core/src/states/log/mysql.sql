-- Bytes: every text collation of this server that others know too takes some two ids for one.
CREATE TABLE IF NOT EXISTS {log} (
    entity      VARBINARY(255) NOT NULL,
    entity_id   VARBINARY(255) NOT NULL,
    event       VARBINARY(255) NOT NULL,
    from_status SMALLINT       NOT NULL,
    to_status   SMALLINT       NOT NULL,
    version     BIGINT         NOT NULL,
    create_time TIMESTAMP(6)   NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (entity, entity_id, event)
) ENGINE = InnoDB;
