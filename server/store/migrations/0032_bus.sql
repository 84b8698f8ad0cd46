-- The event bus: where its server runs now, for the processes that want to connect to it. There is one row.
CREATE TABLE bus (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    installation uuid NOT NULL DEFAULT gen_random_uuid(), -- separates installations that share a cluster of NATS
    address      text NOT NULL DEFAULT '',                -- host and port; empty: none ran yet
    host         text NOT NULL DEFAULT '',                -- its machine and process, for people
    certificate  bytea NOT NULL DEFAULT '',               -- of the server, in DER
    credentials  bytea NOT NULL DEFAULT ''                -- to log in there, sealed
);
INSERT INTO bus DEFAULT VALUES;
