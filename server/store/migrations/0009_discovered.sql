-- What discovery resources found: records by the id that each would have as a
-- resource. Found again, a record is replaced.
CREATE TABLE discovered (
    environment uuid NOT NULL CONSTRAINT discovered_environment REFERENCES environment ON DELETE CASCADE,
    id          text COLLATE "C" NOT NULL,
    type        text NOT NULL,
    agent       text NOT NULL,
    value       text NOT NULL,
    discovery   text NOT NULL, -- id of the resource that found it
    record      json NOT NULL,
    found       timestamptz NOT NULL,
    PRIMARY KEY (environment, id)
);
