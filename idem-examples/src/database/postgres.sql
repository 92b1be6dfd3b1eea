-- Several servers may start at once; without this, one would fail on what another is creating.
SELECT pg_advisory_xact_lock(hashtext('order service schema'));

CREATE TABLE IF NOT EXISTS orders (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_no     TEXT   NOT NULL UNIQUE,
    request_id   TEXT   NOT NULL CONSTRAINT orders_by_request UNIQUE,
    item         TEXT   NOT NULL,
    quantity     BIGINT NOT NULL,
    amount_cents BIGINT NOT NULL,
    status       BIGINT NOT NULL DEFAULT 1,
    version      BIGINT NOT NULL DEFAULT 1,
    charge_no    BIGINT
);

CREATE TABLE IF NOT EXISTS sales (
    sale_no   TEXT   PRIMARY KEY,
    available BIGINT NOT NULL CHECK (available >= 0),
    fence     BIGINT NOT NULL DEFAULT 0
);

-- No foreign key: a purchase is kept only together with an update of its sale.
CREATE TABLE IF NOT EXISTS purchases (
    request_id TEXT NOT NULL CONSTRAINT purchases_by_request UNIQUE,
    sale_no    TEXT NOT NULL,
    buyer      TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS purchases_by_sale ON purchases (sale_no);

CREATE TABLE IF NOT EXISTS payments (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_no     TEXT   NOT NULL,
    charge_no    BIGINT NOT NULL,
    kind         TEXT   NOT NULL,
    amount_cents BIGINT NOT NULL,
    CONSTRAINT payments_by_event UNIQUE (charge_no, kind)
);
CREATE INDEX IF NOT EXISTS payments_by_order ON payments (order_no);
