-- Who halted an environment or paused an agent, and when.
ALTER TABLE environment
    ADD COLUMN halted_by text NOT NULL DEFAULT '',
    ADD COLUMN halted_at timestamptz,
    ADD CONSTRAINT environment_halted_by_somebody CHECK (halted OR (halted_by = '' AND halted_at IS NULL));
ALTER TABLE agent
    ADD COLUMN paused_by text NOT NULL DEFAULT '',
    ADD COLUMN paused_at timestamptz,
    ADD CONSTRAINT agent_paused_by_somebody CHECK (paused OR (paused_by = '' AND paused_at IS NULL));

-- Changes that a person lets through windows and freezes.
--
-- lasting ──until──▶ over
--    └──ended by hand──▶ ended
CREATE TABLE override (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT override_environment REFERENCES environment ON DELETE CASCADE,
    by          text NOT NULL CHECK (by <> ''),
    reason      text NOT NULL CHECK (reason <> ''),
    agents      text[] NOT NULL, -- patterns of names; empty: every agent
    created     timestamptz NOT NULL,
    until       timestamptz NOT NULL,
    ended       timestamptz,
    ended_by    text NOT NULL DEFAULT '',
    CONSTRAINT override_lasts_a_day_at_most CHECK (until > created AND until <= created + interval '24 hours'),
    CONSTRAINT override_ended_by_somebody CHECK ((ended IS NULL) = (ended_by = ''))
);
CREATE INDEX override_by_time ON override (environment, created DESC);

-- What people did to hold changes or to let them through.
CREATE TABLE intervention (
    key         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT intervention_environment REFERENCES environment ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    by          text NOT NULL CHECK (by <> ''),
    kind        text NOT NULL CHECK (kind IN ('halt', 'resume', 'pause', 'unpause', 'override', 'override_end')),
    agent       text NOT NULL DEFAULT '', -- that it was about; empty: all
    reason      text NOT NULL DEFAULT ''
);
CREATE INDEX intervention_by_time ON intervention (environment, key DESC);
