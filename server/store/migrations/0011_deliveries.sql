-- Webhooks that were received, and what each did to the environments that it
-- concerns. What waits is work: the environment's owner takes it from here.
CREATE TABLE delivery (
    id        uuid PRIMARY KEY,
    forge     text NOT NULL,
    key       text NOT NULL, -- the forge's id of the delivery; empty when it has none
    received  timestamptz NOT NULL,
    size      bigint NOT NULL,
    event     json NOT NULL, -- what the payload told, cut to what is needed to act on it again
    replay_of uuid,
    verified  boolean NOT NULL
);
CREATE INDEX delivery_by_received ON delivery (received, id);

CREATE TABLE delivery_outcome (
    delivery    uuid NOT NULL CONSTRAINT outcome_delivery REFERENCES delivery ON DELETE CASCADE,
    environment uuid NOT NULL CONSTRAINT outcome_environment REFERENCES environment ON DELETE CASCADE,
    received    timestamptz NOT NULL,
    forge       text NOT NULL,
    key         text NOT NULL, -- empty when it may come again
    module      text NOT NULL,
    state       text NOT NULL CONSTRAINT outcome_state CHECK (state IN ('waiting', 'started', 'skipped', 'failed', 'refused')),
    reason      text NOT NULL,
    compile     uuid,
    handled     timestamptz,
    PRIMARY KEY (delivery, environment),
    CONSTRAINT outcome_handled CHECK ((state = 'waiting') = (handled IS NULL))
);
-- A forge that sends a delivery again is told so. Webhooks of one event may
-- share their id, one for each environment.
CREATE UNIQUE INDEX outcome_once ON delivery_outcome (environment, forge, key) WHERE key <> '';
CREATE INDEX outcome_by_received ON delivery_outcome (environment, received, delivery);
CREATE INDEX outcome_waiting ON delivery_outcome (environment, received) WHERE state = 'waiting';

-- Repositories of the modules that an environment's project used last.
CREATE TABLE environment_module (
    environment uuid NOT NULL CONSTRAINT module_environment REFERENCES environment ON DELETE CASCADE,
    name        text NOT NULL,
    url         text NOT NULL,
    PRIMARY KEY (environment, name)
);
