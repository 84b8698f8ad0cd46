-- What a resource waits for when it is not simply tried again: a time (retry_at),
-- or a person or new intent (parked).
ALTER TABLE resource_state
    ADD COLUMN parked text NOT NULL DEFAULT '' CHECK (parked IN ('', 'attempts', 'contested')),
    ADD COLUMN parked_at timestamptz,
    ADD COLUMN retry_at timestamptz,
    -- The mark of the handler code under which it failed or was parked; another
    -- code frees it. Empty when nothing is wrong with it.
    ADD COLUMN failed_code text NOT NULL DEFAULT '',
    -- The latest times that drift was healed: [{"of": "attribute,attribute", "at": time}].
    ADD COLUMN heals jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(heals) = 'array'),
    -- It has records of drift that did not end.
    ADD COLUMN drifted boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT state_parked_since CHECK ((parked = '') = (parked_at IS NULL)),
    ADD CONSTRAINT state_parked_is_not_retried CHECK (parked = '' OR retry_at IS NULL);
CREATE INDEX resource_state_parked ON resource_state (environment) WHERE parked <> '';

-- The breaker of an agent whose target cannot be reached: open when it has a since.
ALTER TABLE agent
    ADD COLUMN breaker_since timestamptz,
    ADD COLUMN breaker_probe timestamptz,   -- when one deployment may try again
    ADD COLUMN breaker_pause integer NOT NULL DEFAULT 0 CHECK (breaker_pause >= 0), -- seconds, the pause before that
    ADD COLUMN breaker_failures integer NOT NULL DEFAULT 0 CHECK (breaker_failures >= 0),
    ADD CONSTRAINT agent_breaker_open_or_closed CHECK ((breaker_since IS NULL) = (breaker_probe IS NULL)
        AND (breaker_since IS NOT NULL OR (breaker_pause = 0 AND breaker_failures = 0)));

-- What was found to be other than the intent, without the intent having
-- changed: an attribute of a resource, from when it was noticed.
--
--         ┌─▶ healed      a deployment put it right
-- open ───┼─▶ gone        it was right again by itself
--         └─▶ superseded  the model wants something else
CREATE TABLE drift (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT drift_environment REFERENCES environment ON DELETE CASCADE,
    resource    text COLLATE "C" NOT NULL, -- its id
    attribute   text NOT NULL CHECK (attribute <> ''),
    desired     json NOT NULL,
    found       json NOT NULL,
    version     integer NOT NULL CHECK (version > 0),
    action      uuid NOT NULL, -- that found it
    since       timestamptz NOT NULL,
    seen        timestamptz NOT NULL, -- last
    ended       timestamptz,
    ending      text NOT NULL DEFAULT '' CHECK (ending IN ('', 'healed', 'gone', 'superseded')),
    CONSTRAINT drift_ends_somehow CHECK ((ended IS NULL) = (ending = '')),
    CONSTRAINT drift_found_once UNIQUE (action, attribute)
);
CREATE UNIQUE INDEX drift_one_is_open ON drift (environment, resource, attribute) WHERE ended IS NULL;
CREATE INDEX drift_by_time ON drift (environment, since, id);
CREATE INDEX drift_by_resource ON drift (environment, resource, since);
