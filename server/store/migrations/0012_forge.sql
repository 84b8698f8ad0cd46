-- What forges are told, and pull requests.

-- Pull requests towards the branch of an environment. preview is their newest
-- dry run, of the commit preview_of; approved is the commit whose code a person let run.
CREATE TABLE pull (
    environment uuid NOT NULL CONSTRAINT pull_environment REFERENCES environment ON DELETE CASCADE,
    number      bigint NOT NULL CHECK (number > 0),
    state       text NOT NULL CHECK (state IN ('open', 'closed', 'merged')),
    title       text NOT NULL,
    url         text NOT NULL,
    author      text NOT NULL,
    fork        boolean NOT NULL,
    trusted     boolean NOT NULL,
    base        text NOT NULL,
    head        text NOT NULL,
    updated     timestamptz NOT NULL,
    approved    text NOT NULL DEFAULT '',
    approved_by text NOT NULL DEFAULT '',
    approved_at timestamptz,
    dryrun      uuid,
    preview_of  text NOT NULL DEFAULT '',
    problem     text NOT NULL DEFAULT '',
    comment     text NOT NULL DEFAULT '',
    PRIMARY KEY (environment, number),
    CONSTRAINT pull_approved_by_somebody CHECK ((approved = '') = (approved_at IS NULL) AND (approved = '') = (approved_by = ''))
);
CREATE INDEX pull_by_dryrun ON pull (dryrun) WHERE dryrun IS NOT NULL;

-- Work for forges: written in the transaction of what causes it, done by a
-- worker with growing pauses. Newer work about a topic takes the place of what waits.
--
-- waiting ──▶ sent
--    │  ▲
--    ▼  └─ a person
--   dead
CREATE TABLE forge_outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT forge_outbox_environment REFERENCES environment ON DELETE CASCADE,
    kind        text NOT NULL CHECK (kind IN ('status', 'comment', 'pull', 'pulls')),
    topic       text NOT NULL,
    round       integer NOT NULL DEFAULT 1,
    payload     jsonb NOT NULL,
    created     timestamptz NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    next        timestamptz NOT NULL,
    taken       timestamptz, -- until then a worker has it
    state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'dead')),
    problem     text NOT NULL DEFAULT '',
    done        timestamptz,
    CONSTRAINT forge_outbox_ends CHECK ((state = 'waiting') = (done IS NULL))
);
CREATE UNIQUE INDEX forge_outbox_one_waits ON forge_outbox (environment, topic) WHERE state = 'waiting';
CREATE INDEX forge_outbox_due ON forge_outbox (next) WHERE state = 'waiting';
CREATE INDEX forge_outbox_done ON forge_outbox (done) WHERE state <> 'waiting';

-- What a forge was told last of the deployment of an environment's active version.
CREATE TABLE forge_deploy (
    environment uuid PRIMARY KEY CONSTRAINT forge_deploy_environment REFERENCES environment ON DELETE CASCADE,
    version     integer NOT NULL,
    commit      text NOT NULL,
    state       text NOT NULL CHECK (state IN ('pending', 'success', 'failure')),
    description text NOT NULL
);

-- Whether an environment tells its forge of commits.
CREATE FUNCTION forge_told(env uuid) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM environment e
        WHERE e.id = env AND e.settings->>'forge_statuses' IS DISTINCT FROM 'false' AND e.settings->>'forge' IS DISTINCT FROM 'none'
          AND EXISTS (SELECT FROM environment_secret s WHERE s.environment = e.id AND s.name = 'forge-token'))
$$;
