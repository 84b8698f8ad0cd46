-- The tables of River (github.com/riverqueue/river), which wakes the workers of processes: its migrations 1 to 8 in one
-- step, because PostgreSQL does not let a transaction use a value that it added to an enum. A test of package queue
-- compares them with what the River of this program wants.
CREATE TYPE river_job_state AS ENUM (
    'available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled'
);

CREATE FUNCTION river_job_state_in_bitmask(bitmask bit(8), state river_job_state) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE state
        WHEN 'available' THEN get_bit(bitmask, 7)
        WHEN 'cancelled' THEN get_bit(bitmask, 6)
        WHEN 'completed' THEN get_bit(bitmask, 5)
        WHEN 'discarded' THEN get_bit(bitmask, 4)
        WHEN 'pending'   THEN get_bit(bitmask, 3)
        WHEN 'retryable' THEN get_bit(bitmask, 2)
        WHEN 'running'   THEN get_bit(bitmask, 1)
        WHEN 'scheduled' THEN get_bit(bitmask, 0)
        ELSE 0
    END = 1;
$$;

CREATE TABLE river_job (
    id            bigserial PRIMARY KEY,
    state         river_job_state NOT NULL DEFAULT 'available',
    attempt       smallint NOT NULL DEFAULT 0,
    max_attempts  smallint NOT NULL DEFAULT 25,
    attempted_at  timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    finalized_at  timestamptz,
    scheduled_at  timestamptz NOT NULL DEFAULT now(),
    priority      smallint NOT NULL DEFAULT 1,
    args          jsonb NOT NULL,
    attempted_by  text[],
    errors        jsonb[],
    kind          text NOT NULL,
    metadata      jsonb NOT NULL DEFAULT '{}',
    queue         text NOT NULL DEFAULT 'default',
    tags          varchar(255)[] NOT NULL DEFAULT '{}',
    unique_key    bytea,
    unique_states bit(8),
    CONSTRAINT finalized_or_finalized_at_null CHECK (
        finalized_at IS NULL AND state NOT IN ('cancelled', 'completed', 'discarded')
        OR finalized_at IS NOT NULL AND state IN ('cancelled', 'completed', 'discarded')),
    CONSTRAINT max_attempts_is_positive CHECK (max_attempts > 0),
    CONSTRAINT priority_in_range CHECK (priority >= 1 AND priority <= 4),
    CONSTRAINT queue_length CHECK (char_length(queue) > 0 AND char_length(queue) < 128),
    CONSTRAINT kind_length CHECK (char_length(kind) > 0 AND char_length(kind) < 128)
);
CREATE INDEX river_job_kind ON river_job USING btree (kind);
CREATE INDEX river_job_state_and_finalized_at_index ON river_job USING btree (state, finalized_at) WHERE finalized_at IS NOT NULL;
CREATE INDEX river_job_prioritized_fetching_index ON river_job USING btree (state, queue, priority, scheduled_at, id);
CREATE INDEX river_job_args_index ON river_job USING gin (args);
CREATE INDEX river_job_metadata_index ON river_job USING gin (metadata);
CREATE UNIQUE INDEX river_job_unique_idx ON river_job (unique_key)
    WHERE unique_key IS NOT NULL AND unique_states IS NOT NULL AND river_job_state_in_bitmask(unique_states, state);

CREATE UNLOGGED TABLE river_leader (
    elected_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    leader_id  text NOT NULL,
    name       text PRIMARY KEY DEFAULT 'default',
    CONSTRAINT name_length CHECK (name = 'default'),
    CONSTRAINT leader_id_length CHECK (char_length(leader_id) > 0 AND char_length(leader_id) < 128)
);

CREATE TABLE river_queue (
    name       text PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    metadata   jsonb NOT NULL DEFAULT '{}',
    paused_at  timestamptz,
    updated_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE river_notification (
    id         bigserial PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    payload    text NOT NULL,
    topic      text NOT NULL,
    CONSTRAINT topic_length CHECK (length(topic) > 0 AND length(topic) < 128)
);
CREATE INDEX river_notification_created_at_idx ON river_notification (created_at);
CREATE INDEX river_notification_topic_id_idx ON river_notification (topic, id);

CREATE TABLE river_migration (
    line       text NOT NULL,
    version    bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT line_length CHECK (char_length(line) > 0 AND char_length(line) < 128),
    CONSTRAINT version_gte_1 CHECK (version >= 1),
    PRIMARY KEY (line, version)
);
INSERT INTO river_migration (line, version) SELECT 'main', generate_series(1, 8);

-- Recorded work: one row for each intention, with all its attempts.
--
-- waiting ──▶ running ──▶ done
--  ▲   ▲ │      │ │ └───▶ cancelled
--  │   │ │      │ └─────▶ dead ──┐
--  │   └─┼──────┘ fails          │
--  │     └─▶ cancelled, dead     │
--  └─────────── a person ────────┘
CREATE TABLE process (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text NOT NULL CHECK (name <> ''),
    resource_type   text NOT NULL CHECK (resource_type <> ''),
    resource_id     text NOT NULL CHECK (resource_id <> ''),
    environment     uuid CONSTRAINT process_environment REFERENCES environment ON DELETE CASCADE,
    project         uuid CONSTRAINT process_project REFERENCES project ON DELETE CASCADE,
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'cancelled', 'dead')),
    from_state      text NOT NULL DEFAULT '', -- of the resource; during_state is empty when that has no state
    during_state    text NOT NULL DEFAULT '',
    done_state      text NOT NULL DEFAULT '',
    failed_state    text NOT NULL DEFAULT '',
    cancelled_state text NOT NULL DEFAULT '',
    phase           text NOT NULL DEFAULT '', -- the last handler that finished
    attempts        integer NOT NULL DEFAULT 0,
    most            integer NOT NULL CHECK (most > 0),
    priority        smallint NOT NULL CHECK (priority BETWEEN 1 AND 4),
    queue           text NOT NULL CHECK (queue <> ''),
    single          boolean NOT NULL DEFAULT false, -- at most one waits
    problem         text NOT NULL DEFAULT '',
    reason          text NOT NULL DEFAULT '', -- why it ended
    data            jsonb NOT NULL DEFAULT '{}',
    made_by         text NOT NULL DEFAULT '',
    made            timestamptz NOT NULL DEFAULT now(), -- all times are those of the database's clock
    begun           timestamptz,
    next            timestamptz NOT NULL,
    seconds         double precision,          -- that it has in all, NULL for ever
    deadline        timestamptz,
    ended           timestamptz,
    worker          text NOT NULL DEFAULT '',
    lease           timestamptz,
    fence           bigint NOT NULL DEFAULT 0, -- grows whenever somebody takes it, or takes it away
    cancel          text NOT NULL DEFAULT '',  -- who or what asks the worker to end it
    job             bigint,                    -- the last job of River that was made for it
    queued          timestamptz,               -- when that was
    CONSTRAINT process_ends CHECK ((state IN ('waiting', 'running')) = (ended IS NULL)),
    CONSTRAINT process_leased_while_it_runs CHECK ((state = 'running') = (lease IS NOT NULL))
);
CREATE UNIQUE INDEX process_one_runs ON process (resource_type, resource_id) WHERE state = 'running';
CREATE UNIQUE INDEX process_one_waits ON process (name, resource_type, resource_id) WHERE state = 'waiting' AND single;
CREATE INDEX process_open ON process (resource_type, resource_id, id) WHERE state IN ('waiting', 'running');
CREATE INDEX process_due ON process (next) WHERE state = 'waiting';
CREATE INDEX process_lease ON process (lease) WHERE state = 'running';
CREATE INDEX process_late ON process (deadline) WHERE state IN ('waiting', 'running') AND deadline IS NOT NULL;
CREATE INDEX process_dead ON process (environment) WHERE state = 'dead';
CREATE INDEX process_of_environment ON process (environment, made DESC, id DESC);
CREATE INDEX process_ended ON process (ended) WHERE ended IS NOT NULL;

-- The states of resources that have no table of their own. A resource without a row has the state ''.
CREATE TABLE process_resource (
    type  text NOT NULL CHECK (type <> ''),
    id    text NOT NULL CHECK (id <> ''),
    state text NOT NULL,
    PRIMARY KEY (type, id)
);

-- Messages to forges are sent by the process forge.send, of which each environment has one. taken keeps older servers
-- away from a message. by_process says that a process took it: the next process of the environment need not wait.
ALTER TABLE forge_outbox ADD COLUMN by_process boolean NOT NULL DEFAULT false;
CREATE INDEX forge_outbox_waits ON forge_outbox (environment, next) WHERE state = 'waiting';
