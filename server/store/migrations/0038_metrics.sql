-- since: 35
-- Metrics: how many resources were in which state, how long compiles and deployments took, and so on. One process
-- writes a sample of all environments each minute. Samples of a day ago are put together to one for each hour.

CREATE TABLE metric (
    environment           uuid NOT NULL CONSTRAINT metric_environment REFERENCES environment ON DELETE CASCADE,
    at                    timestamptz NOT NULL, -- of a minute: its end; of an hour: its beginning
    hourly                boolean NOT NULL DEFAULT false,
    samples               integer NOT NULL DEFAULT 1 CHECK (samples > 0), -- how many minutes it is made of
    -- How many there were, on average over the samples: resources by state …
    deploying             real NOT NULL,
    undefined             real NOT NULL,
    skipped_for_undefined real NOT NULL,
    available             real NOT NULL,
    skipped               real NOT NULL,
    failed                real NOT NULL,
    non_compliant         real NOT NULL,
    deployed              real NOT NULL,
    -- … agents, and compiles that waited.
    agents_up             real NOT NULL,
    agents_down           real NOT NULL,
    agents_paused         real NOT NULL,
    compiles_waiting      real NOT NULL,
    -- How often something happened, and the sum of the seconds that it took: compiles ended, compiles began after
    -- they had waited, deployments of resources ended.
    compiles              integer NOT NULL CHECK (compiles >= 0),
    compile_seconds       double precision NOT NULL,
    waits                 integer NOT NULL CHECK (waits >= 0),
    wait_seconds          double precision NOT NULL,
    deploys               integer NOT NULL CHECK (deploys >= 0),
    deploys_failed        integer NOT NULL CHECK (deploys_failed BETWEEN 0 AND deploys),
    deploy_seconds        double precision NOT NULL,
    PRIMARY KEY (environment, at, hourly)
);
-- For putting old minutes together.
CREATE INDEX metric_minutes ON metric (at) WHERE NOT hourly;

-- Up to when samples were taken. Taking a sample moves it on, so that each event is counted in one sample, whichever
-- process takes it.
CREATE TABLE metric_clock (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    until timestamptz NOT NULL
);
INSERT INTO metric_clock (until) VALUES (now());

-- Finds the actions of the last minute. Actions are written in the order in which they end, more or less, and
-- this kind of index costs next to nothing when one is written.
CREATE INDEX action_by_finished ON action USING brin (finished) WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX compile_by_started ON compile (started);
