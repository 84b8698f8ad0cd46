-- since: 30
-- The event bus: where its server runs now, for the processes that want to connect to it. There is one row.
CREATE TABLE bus (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    address     text NOT NULL DEFAULT '',  -- host and port; empty: none ran yet
    host        text NOT NULL DEFAULT '',  -- the name of its machine
    certificate bytea NOT NULL DEFAULT '', -- of the server, in DER
    credentials bytea NOT NULL DEFAULT ''  -- to log in there, sealed
);
INSERT INTO bus DEFAULT VALUES;
