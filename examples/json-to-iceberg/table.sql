CREATE NAMESPACE IF NOT EXISTS lake.shop;

CREATE TABLE IF NOT EXISTS lake.shop.payments (id BIGINT, customer STRING, amount DECIMAL(12, 2), paid TIMESTAMP)
USING iceberg
PARTITIONED BY (day(paid));
