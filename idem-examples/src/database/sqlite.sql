CREATE TABLE IF NOT EXISTS orders (
    id           INTEGER PRIMARY KEY,
    order_no     TEXT    NOT NULL UNIQUE,
    request_id   TEXT    NOT NULL,
    item         TEXT    NOT NULL,
    quantity     INTEGER NOT NULL,
    amount_cents INTEGER NOT NULL,
    status       INTEGER NOT NULL DEFAULT 1,
    version      INTEGER NOT NULL DEFAULT 1,
    charge_no    INTEGER
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS orders_by_request ON orders (request_id);

CREATE TABLE IF NOT EXISTS sales (
    sale_no   TEXT    PRIMARY KEY,
    available INTEGER NOT NULL CHECK (available >= 0),
    fence     INTEGER NOT NULL DEFAULT 0
) STRICT;

-- No foreign key: a purchase is kept only together with an update of its sale.
CREATE TABLE IF NOT EXISTS purchases (
    request_id TEXT NOT NULL,
    sale_no    TEXT NOT NULL,
    buyer      TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS purchases_by_request ON purchases (request_id);
CREATE INDEX IF NOT EXISTS purchases_by_sale ON purchases (sale_no);

CREATE TABLE IF NOT EXISTS payments (
    id           INTEGER PRIMARY KEY,
    order_no     TEXT    NOT NULL,
    charge_no    INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS payments_by_event ON payments (charge_no, kind);
CREATE INDEX IF NOT EXISTS payments_by_order ON payments (order_no);
