-- Ours.
CREATE TABLE IF NOT EXISTS orders (
    -- Random and not counted: a new file beside an old Redis must not meet the records of others.
    order_no     TEXT    PRIMARY KEY DEFAULT ('A-' || hex(randomblob(4))),
    request_id   TEXT    NOT NULL UNIQUE,
    item         TEXT    NOT NULL,
    quantity     INTEGER NOT NULL,
    amount_cents INTEGER NOT NULL,
    status       TEXT    NOT NULL DEFAULT 'unpaid' CHECK (status IN ('unpaid', 'paid')),
    version      INTEGER NOT NULL DEFAULT 1,
    charge_no    INTEGER
) STRICT;

-- The provider's, in the same file so that nothing else has to be installed. No constraint keeps
-- it from charging twice.
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
