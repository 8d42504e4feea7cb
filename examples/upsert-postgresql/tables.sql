CREATE TABLE accounts (id text PRIMARY KEY, balance numeric NOT NULL, changes bigint NOT NULL DEFAULT 1);
CREATE TABLE positions (consumer text, shard text, position text NOT NULL, PRIMARY KEY (consumer, shard));
