-- The place of record. Constraints repeat the state machines of
-- internal/intent, so that a wrong program cannot write a wrong state.

CREATE TABLE project (
    id   uuid PRIMARY KEY,
    name text NOT NULL CONSTRAINT project_name_given CHECK (name <> ''),
    CONSTRAINT project_name_taken UNIQUE (name)
);

CREATE TABLE environment (
    id           uuid PRIMARY KEY,
    project      uuid NOT NULL CONSTRAINT environment_project REFERENCES project ON DELETE CASCADE,
    name         text NOT NULL CONSTRAINT environment_name_given CHECK (name <> ''),
    repo_url     text NOT NULL,
    repo_branch  text NOT NULL,
    repo_subdir  text NOT NULL,
    description  text NOT NULL,
    icon         text NOT NULL,
    halted       boolean NOT NULL,
    settings     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(settings) = 'object'),
    created      timestamptz NOT NULL,
    last_version integer NOT NULL DEFAULT 0 CHECK (last_version >= 0),
    CONSTRAINT environment_name_taken UNIQUE (project, name)
);

CREATE TABLE environment_secret (
    environment uuid NOT NULL CONSTRAINT secret_environment REFERENCES environment ON DELETE CASCADE,
    name        text NOT NULL,
    sealed      bytea NOT NULL,
    PRIMARY KEY (environment, name)
);

-- requested ──▶ started ──▶ completed. A request that another run answers
-- follows that run (substitute) through the same states.
CREATE TABLE compile (
    id              uuid PRIMARY KEY,
    environment     uuid NOT NULL CONSTRAINT compile_environment REFERENCES environment ON DELETE CASCADE,
    requested       timestamptz NOT NULL,
    started         timestamptz,
    completed       timestamptz,
    trigger_type    text NOT NULL,
    trigger_message text NOT NULL,
    metadata        json NOT NULL,
    update_source   boolean NOT NULL,
    reinstall       boolean NOT NULL,
    export          boolean NOT NULL,
    variables       jsonb NOT NULL CHECK (jsonb_typeof(variables) = 'object'),
    success         boolean,
    version         integer CHECK (version > 0),
    revision        json,
    substitute      uuid REFERENCES compile ON DELETE CASCADE,
    diagnostics     json,
    CONSTRAINT compile_starts_before_it_completes CHECK (completed IS NULL OR started IS NOT NULL),
    CONSTRAINT compile_ends_with_a_result CHECK ((completed IS NULL) = (success IS NULL)),
    CONSTRAINT compile_version_comes_at_the_end CHECK (version IS NULL OR completed IS NOT NULL),
    CONSTRAINT compile_answered_by_a_run CHECK (substitute IS NULL OR (started IS NOT NULL AND substitute <> id))
);
CREATE UNIQUE INDEX compile_one_runs ON compile (environment)
    WHERE started IS NOT NULL AND completed IS NULL AND substitute IS NULL;
CREATE INDEX compile_by_requested ON compile (environment, requested, id);
CREATE INDEX compile_open ON compile (environment, requested) WHERE completed IS NULL;
CREATE INDEX compile_by_substitute ON compile (substitute) WHERE substitute IS NOT NULL;
CREATE INDEX compile_by_completed ON compile (completed);

CREATE TABLE stage (
    id          uuid PRIMARY KEY,
    compile     uuid NOT NULL CONSTRAINT stage_compile REFERENCES compile ON DELETE CASCADE,
    position    bigint GENERATED ALWAYS AS IDENTITY,
    name        text NOT NULL,
    command     text NOT NULL,
    started     timestamptz NOT NULL,
    completed   timestamptz,
    return_code integer,
    out_bytes   bigint NOT NULL DEFAULT 0,
    err_bytes   bigint NOT NULL DEFAULT 0,
    CONSTRAINT stage_ends_with_a_return_code CHECK ((completed IS NULL) = (return_code IS NULL))
);
CREATE INDEX stage_by_compile ON stage (compile, position);

-- What a stage printed, in pieces as they came. Pieces between the beginning
-- and the end that are kept are dropped again.
CREATE TABLE stage_output (
    stage  uuid NOT NULL REFERENCES stage ON DELETE CASCADE,
    stream smallint NOT NULL CHECK (stream IN (1, 2)),
    start  bigint NOT NULL CHECK (start >= 0),
    bytes  bytea NOT NULL,
    PRIMARY KEY (stage, stream, start)
);

-- What executors load, by the hash of the document; versions share it.
CREATE TABLE code (
    hash     uuid PRIMARY KEY,
    document json NOT NULL
);

--             ┌─▶ active ──▶ retired
-- candidate ──┤
--             └─▶ skipped_candidate   (a later one was released first)
CREATE TABLE version (
    environment uuid NOT NULL CONSTRAINT version_environment REFERENCES environment ON DELETE CASCADE,
    number      integer NOT NULL CHECK (number > 0),
    created     timestamptz NOT NULL,
    released    timestamptz,
    status      text NOT NULL CHECK (status IN ('candidate', 'active', 'retired', 'skipped_candidate')),
    total       integer NOT NULL CHECK (total >= 0),
    compile     uuid, -- survives its report
    provenance  json NOT NULL,
    unknowns    json NOT NULL,
    undefined   integer NOT NULL CHECK (undefined BETWEEN 0 AND total), -- resources with unknown values
    code        uuid NOT NULL REFERENCES code,
    -- The keys of resource_content, in order of resource id: 100 versions of
    -- 10,000 resources are 100 short arrays and not a million rows.
    contents    bigint[] NOT NULL,
    PRIMARY KEY (environment, number),
    CONSTRAINT version_released_when_active_or_retired CHECK ((released IS NOT NULL) = (status IN ('active', 'retired'))),
    CONSTRAINT version_counts_its_resources CHECK (total = cardinality(contents))
);
CREATE UNIQUE INDEX version_one_is_active ON version (environment) WHERE status = 'active';
CREATE UNIQUE INDEX version_one_per_compile ON version (environment, compile) WHERE compile IS NOT NULL;
CREATE INDEX version_by_code ON version (code);

-- A resource that some stored version has. This table and the next two are
-- written ten thousand rows at a time; foreign keys, checked row by row, took
-- half of that time. The one statement that fills each holds the lock of the
-- environment, and deleting an environment empties them first.
CREATE TABLE resource (
    key         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment uuid NOT NULL,
    id          text COLLATE "C" NOT NULL,
    type        text NOT NULL,
    agent       text NOT NULL,
    value       text NOT NULL,
    first_seen  timestamptz NOT NULL,
    UNIQUE (environment, id)
);

-- What one or more versions say of a resource; the digest is of all columns.
CREATE TABLE resource_content (
    key            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource       bigint NOT NULL,
    digest         uuid NOT NULL,
    attributes     json NOT NULL,
    attribute_hash text NOT NULL,
    requires       text[] NOT NULL,
    resource_set   text NOT NULL,
    undefined      text[] NOT NULL,
    send_event     boolean NOT NULL,
    receive_events boolean NOT NULL,
    purged         boolean NOT NULL,
    UNIQUE (resource, digest)
);

-- What is known of a resource that was released at least once.
CREATE TABLE resource_state (
    resource      bigint PRIMARY KEY,
    environment   uuid NOT NULL,
    content       bigint NOT NULL, -- of the active version; of an orphan: the last
    compliance    text NOT NULL CHECK (compliance IN ('compliant', 'has_update', 'non_compliant', 'undefined')),
    last_run      text NOT NULL DEFAULT 'new' CHECK (last_run IN ('new', 'successful', 'failed', 'skipped')),
    blocked       text NOT NULL CHECK (blocked IN ('not_blocked', 'blocked', 'temporarily_blocked')),
    is_deploying  boolean NOT NULL DEFAULT false,
    last_run_at   timestamptz,
    last_success  timestamptz,
    last_deployed integer NOT NULL DEFAULT 0 CHECK (last_deployed >= 0),
    deployed_hash text NOT NULL DEFAULT '',
    intent_hash   text NOT NULL,
    last_events   timestamptz,
    attempts      integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    orphaned      integer NOT NULL DEFAULT 0 CHECK (orphaned >= 0),
    status        text NOT NULL GENERATED ALWAYS AS (CASE
        WHEN orphaned > 0 THEN 'orphaned'
        WHEN is_deploying THEN 'deploying'
        WHEN compliance = 'undefined' THEN 'undefined'
        WHEN blocked = 'blocked' THEN 'skipped_for_undefined'
        WHEN compliance = 'has_update' THEN 'available'
        WHEN last_run = 'skipped' THEN 'skipped'
        WHEN last_run = 'failed' THEN 'failed'
        WHEN compliance = 'non_compliant' THEN 'non_compliant'
        WHEN last_run = 'successful' THEN 'deployed'
        ELSE 'available' END) STORED,
    CONSTRAINT state_undefined_is_blocked CHECK (compliance <> 'undefined' OR blocked = 'blocked'),
    CONSTRAINT state_new_never_ran CHECK (last_run <> 'new' OR last_run_at IS NULL)
);
CREATE INDEX resource_state_by_environment ON resource_state (environment);
CREATE INDEX resource_state_by_content ON resource_state (content);

-- open ──▶ finished
CREATE TABLE action (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT action_environment REFERENCES environment ON DELETE CASCADE,
    kind        text NOT NULL CHECK (kind IN ('store', 'deploy', 'dryrun', 'getfact', 'other')),
    resource    text COLLATE "C" NOT NULL, -- its id; an action outlives its resource
    version     integer NOT NULL CHECK (version >= 0),
    started     timestamptz NOT NULL,
    finished    timestamptz,
    status      text NOT NULL,
    change      text NOT NULL CHECK (change IN ('nochange', 'created', 'purged', 'updated')),
    changes     json NOT NULL,
    messages    json NOT NULL CHECK (json_typeof(messages) = 'array'),
    CONSTRAINT action_deploying_while_open CHECK (CASE WHEN finished IS NULL THEN status IN ('', 'deploying') ELSE status <> 'deploying' END)
);
CREATE INDEX action_by_resource ON action (environment, resource, started);
CREATE INDEX action_by_time ON action (environment, started);
CREATE INDEX action_open ON action (environment) WHERE finished IS NULL;

CREATE TABLE agent (
    environment uuid NOT NULL REFERENCES environment ON DELETE CASCADE,
    name        text NOT NULL,
    paused      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (environment, name)
);

CREATE TABLE dryrun (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL,
    version     integer NOT NULL,
    date        timestamptz NOT NULL,
    total       integer NOT NULL,
    todo        integer NOT NULL,
    CONSTRAINT dryrun_version FOREIGN KEY (environment, version) REFERENCES version ON DELETE CASCADE,
    CONSTRAINT dryrun_counts_down CHECK (todo BETWEEN 0 AND total)
);
CREATE INDEX dryrun_by_version ON dryrun (environment, version);

CREATE TABLE dryrun_diff (
    dryrun     uuid NOT NULL REFERENCES dryrun ON DELETE CASCADE,
    resource   text COLLATE "C" NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('added', 'modified', 'deleted', 'unmodified', 'agent_down', 'undefined', 'skipped_for_undefined')),
    attributes json NOT NULL,
    PRIMARY KEY (dryrun, resource)
);

-- Parameters of the environment (resource is empty) and facts of a resource.
CREATE TABLE parameter (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT parameter_environment REFERENCES environment ON DELETE CASCADE,
    name        text NOT NULL CHECK (name <> ''),
    resource    text COLLATE "C" NOT NULL,
    value       text NOT NULL,
    source      text NOT NULL,
    updated     timestamptz NOT NULL,
    expires     boolean NOT NULL,
    metadata    json NOT NULL,
    UNIQUE (environment, resource, name)
);

CREATE TABLE file (
    sha1    text PRIMARY KEY CHECK (sha1 ~ '^[0-9a-f]{40}$'),
    content bytea NOT NULL
);
