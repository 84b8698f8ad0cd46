-- Commits on their way from an environment to one that follows it. One waits at a time.
--
-- waiting ──gates open, or a person──▶ promoted
--    └──the environment that is followed moves on──▶ superseded
CREATE TABLE promotion (
    key            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             uuid NOT NULL UNIQUE,
    environment    uuid NOT NULL CONSTRAINT promotion_environment REFERENCES environment ON DELETE CASCADE,
    source         uuid NOT NULL CHECK (source <> environment), -- may be deleted since
    source_name    text NOT NULL,
    version        integer NOT NULL CHECK (version > 0), -- of source
    commit         text NOT NULL CHECK (commit <> ''),
    branch         text NOT NULL,
    follows        text NOT NULL,
    subject        text NOT NULL,
    author         text NOT NULL,
    since          timestamptz NOT NULL,
    created        timestamptz NOT NULL,
    state          text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'promoted', 'superseded')),
    gates          jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(gates) = 'array'),
    checked        timestamptz NOT NULL,
    asked          boolean NOT NULL DEFAULT false, -- people were told that it waits for them
    approved_by    text NOT NULL DEFAULT '',
    approved_why   text NOT NULL DEFAULT '',
    approved_at    timestamptz,
    overridden_by  text NOT NULL DEFAULT '',
    overridden_why text NOT NULL DEFAULT '',
    overridden_at  timestamptz,
    ended          timestamptz,
    reason         text NOT NULL DEFAULT '',
    compile        uuid, -- that it asked for; reports go before this does
    made           integer CHECK (made > 0),
    success        boolean,
    CONSTRAINT promotion_ends CHECK ((state = 'waiting') = (ended IS NULL)),
    CONSTRAINT promotion_compiles CHECK ((state = 'promoted') = (compile IS NOT NULL)),
    CONSTRAINT promotion_made_by_a_compile CHECK (state = 'promoted' OR (made IS NULL AND success IS NULL)),
    CONSTRAINT promotion_approved_by_somebody CHECK ((approved_by = '') = (approved_at IS NULL)),
    CONSTRAINT promotion_overridden_by_somebody CHECK ((overridden_by = '') = (overridden_at IS NULL))
);
CREATE UNIQUE INDEX promotion_one_waits ON promotion (environment) WHERE state = 'waiting';
CREATE INDEX promotion_by_time ON promotion (environment, key DESC);

-- Who pauses the promotions to an environment.
CREATE TABLE promotion_pause (
    environment uuid PRIMARY KEY CONSTRAINT promotion_pause_environment REFERENCES environment ON DELETE CASCADE,
    by          text NOT NULL CHECK (by <> ''),
    reason      text NOT NULL,
    at          timestamptz NOT NULL
);

-- The deployments that broke something, to know since when nothing did.
CREATE INDEX action_broke ON action (environment, started) WHERE kind = 'deploy' AND status IN ('failed', 'unavailable');

ALTER TABLE intervention DROP CONSTRAINT intervention_kind_check;
ALTER TABLE intervention ADD CONSTRAINT intervention_kind_check CHECK (kind IN (
    'halt', 'resume', 'pause', 'unpause', 'override', 'override_end', 'accept', 'block', 'unblock', 'rollback', 'approve', 'promote',
    'pause_promotions', 'resume_promotions'));
