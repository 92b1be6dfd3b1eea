-- Ids are VARBINARY: the usual collations, and padding, make different ids equal.
CREATE TABLE IF NOT EXISTS orders (
    id           BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_no     VARBINARY(16)  NOT NULL UNIQUE,
    request_id   VARBINARY(400) NOT NULL,
    item         VARCHAR(20)    NOT NULL,
    quantity     BIGINT         NOT NULL,
    amount_cents BIGINT         NOT NULL,
    status       BIGINT         NOT NULL DEFAULT 1,
    version      BIGINT         NOT NULL DEFAULT 1,
    charge_no    BIGINT,
    UNIQUE KEY orders_by_request (request_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS sales (
    sale_no   VARBINARY(16) NOT NULL PRIMARY KEY,
    available BIGINT        NOT NULL CHECK (available >= 0),
    fence     BIGINT        NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- No foreign key: a purchase is kept only together with an update of its sale. To note one would
-- lock the row of its sale, shared, and two buyers who then update it would wait for each other.
CREATE TABLE IF NOT EXISTS purchases (
    request_id VARBINARY(400) NOT NULL,
    sale_no    VARBINARY(100) NOT NULL,
    buyer      VARCHAR(100)   NOT NULL,
    UNIQUE KEY purchases_by_request (request_id),
    INDEX purchases_by_sale (sale_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS payments (
    id           BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_no     VARBINARY(16) NOT NULL,
    charge_no    BIGINT        NOT NULL,
    kind         VARCHAR(20)   NOT NULL,
    amount_cents BIGINT        NOT NULL,
    UNIQUE KEY payments_by_event (charge_no, kind),
    INDEX payments_by_order (order_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
