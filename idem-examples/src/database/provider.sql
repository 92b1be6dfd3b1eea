-- No constraint keeps the provider from charging twice.
CREATE TABLE IF NOT EXISTS charges (
    charge_no    INTEGER PRIMARY KEY,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS charges_by_order ON charges (order_no);

-- Requests with a smaller fence are refused.
CREATE TABLE IF NOT EXISTS voids (
    order_no TEXT    PRIMARY KEY,
    fence    INTEGER NOT NULL
) STRICT;
