CREATE TABLE accounts (id text PRIMARY KEY, balance numeric NOT NULL, changes bigint NOT NULL DEFAULT 1);
CREATE TABLE parts (consumer text, batch bigint, shard text, PRIMARY KEY (consumer, batch, shard));
