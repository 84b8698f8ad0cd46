-- since: 30
-- Several server processes share the work: what they need to find and replace each other.

-- Fencing numbers of the locks with names (package locks).
CREATE TABLE lock_fence (
    name  text PRIMARY KEY CHECK (name <> ''),
    fence bigint NOT NULL
);

-- What all processes of an installation share.
CREATE TABLE installation (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    id              uuid NOT NULL,
    key_fingerprint text NOT NULL -- of the secret key
);

-- The server processes that run. A row that was not seen for a while belongs to a process that is gone, or that is to
-- be treated so.
CREATE TABLE replica (
    id      uuid PRIMARY KEY,
    name    text NOT NULL CHECK (name <> ''), -- for people: host and process
    roles   text[] NOT NULL CHECK (cardinality(roles) > 0 AND roles <@ '{api,process,agent}'),
    version text NOT NULL,
    address text NOT NULL DEFAULT '',          -- where it answers, empty when it does not listen
    started timestamptz NOT NULL,
    seen    timestamptz NOT NULL,              -- by the clock of the database
    owned   integer NOT NULL DEFAULT 0,        -- environments
    wanted  integer NOT NULL DEFAULT 0         -- its share of them
);

-- What the owner of an environment is asked to do. The owner takes them in order, and deletes each when what it asks
-- for is done, or recorded elsewhere.
CREATE TABLE request (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT request_environment REFERENCES environment ON DELETE CASCADE,
    kind        text NOT NULL CHECK (kind <> ''),
    detail      jsonb NOT NULL DEFAULT '{}',
    made        timestamptz NOT NULL DEFAULT now(),
    taken       timestamptz -- when an owner first began with it
);
CREATE INDEX request_of_environment ON request (environment, id);
