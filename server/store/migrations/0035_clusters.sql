-- since: 34
-- Clusters: what administrators offer, which clusters there are, and the work on their machines (ADR 45).

-- Providers, hardware types, services, templates and so on. Every write makes a new version; a version without content
-- says that the entity was deleted then. Sensitive fields of providers are sealed with the server's secret key.
CREATE TABLE cluster_entity (
    project uuid CONSTRAINT cluster_entity_project REFERENCES project ON DELETE CASCADE, -- NULL: shared by all projects
    kind    text NOT NULL CHECK (kind IN ('providertypes', 'automatortypes', 'providers', 'hardwaretypes', 'imagetypes',
                                          'services', 'partialtemplates', 'clustertemplates')),
    name    text NOT NULL CHECK (name <> ''),
    version integer NOT NULL CHECK (version > 0),
    content jsonb,
    sealed  bytea, -- a JSON object of sensitive fields
    made    timestamptz NOT NULL DEFAULT now(),
    made_by text NOT NULL
);
-- A NULL is equal to no other one, so what is shared counts as the project with the number 0.
CREATE UNIQUE INDEX cluster_entity_version ON cluster_entity
    (COALESCE(project, '00000000-0000-0000-0000-000000000000'), kind, name, version);
-- The newest write tells whether a catalogue in memory is still right.
CREATE INDEX cluster_entity_made ON cluster_entity (made);
CREATE INDEX cluster_entity_made_of ON cluster_entity (project, made);

-- What a project may use of the cluster service. A project without a row has none of its own provisioners.
CREATE TABLE cluster_tenant (
    project      uuid PRIMARY KEY CONSTRAINT cluster_tenant_project REFERENCES project ON DELETE CASCADE,
    workers      integer NOT NULL DEFAULT 1 CHECK (workers BETWEEN 0 AND 1000), -- tasks at a time in the server's own provisioner
    max_clusters integer CHECK (max_clusters >= 0), -- NULL: no limit
    max_nodes    integer CHECK (max_nodes >= 0)
);

-- Files of plug-ins. inactive (–/–) ──stage──▶ staged (–/slated) ──sync──▶ active (live/slated) ──recall──▶ recalled (live/–)
CREATE TABLE cluster_resource (
    project uuid CONSTRAINT cluster_resource_project REFERENCES project ON DELETE CASCADE, -- NULL: shared by all projects
    kind    text NOT NULL CHECK (kind IN ('providertypes', 'automatortypes')),
    plugin  text NOT NULL CHECK (plugin <> ''),
    type    text NOT NULL CHECK (type <> ''),
    name    text NOT NULL CHECK (name <> ''),
    version integer NOT NULL CHECK (version > 0),
    size    bigint NOT NULL CHECK (size >= 0),
    hash    text NOT NULL, -- SHA-256 of the content
    live    boolean NOT NULL DEFAULT false,
    slated  boolean NOT NULL DEFAULT false,
    made    timestamptz NOT NULL DEFAULT now(),
    made_by text NOT NULL
);
CREATE UNIQUE INDEX cluster_resource_version ON cluster_resource
    (COALESCE(project, '00000000-0000-0000-0000-000000000000'), kind, plugin, type, name, version);
CREATE INDEX cluster_resource_hash ON cluster_resource (hash);
-- One version is live, and one is slated to be.
CREATE UNIQUE INDEX cluster_resource_live ON cluster_resource
    (COALESCE(project, '00000000-0000-0000-0000-000000000000'), kind, plugin, type, name) WHERE live;
CREATE UNIQUE INDEX cluster_resource_slated ON cluster_resource
    (COALESCE(project, '00000000-0000-0000-0000-000000000000'), kind, plugin, type, name) WHERE slated;
-- Numbers of versions are never used twice, so that nobody stages another content than the one that was looked at.
CREATE TABLE cluster_resource_number (
    project uuid CONSTRAINT cluster_resource_number_project REFERENCES project ON DELETE CASCADE,
    kind    text NOT NULL,
    plugin  text NOT NULL,
    type    text NOT NULL,
    name    text NOT NULL,
    last    integer NOT NULL CHECK (last > 0)
);
CREATE UNIQUE INDEX cluster_resource_number_of ON cluster_resource_number
    (COALESCE(project, '00000000-0000-0000-0000-000000000000'), kind, plugin, type, name);

-- pending ──▶ active ◀──▶ inconsistent; pending ──▶ incomplete ──▶ active; all ──▶ terminated
CREATE TABLE cluster (
    id           uuid PRIMARY KEY,
    environment  uuid NOT NULL CONSTRAINT cluster_environment REFERENCES environment,
    number       bigint GENERATED ALWAYS AS IDENTITY, -- for people, and for hostnames
    name         text NOT NULL CHECK (name <> ''),
    state        text NOT NULL CHECK (state IN ('pending', 'active', 'incomplete', 'inconsistent', 'terminated')),
    owner        text NOT NULL, -- who asked for it
    made         timestamptz NOT NULL DEFAULT now(),
    ended        timestamptz,
    wanted       jsonb,         -- manifest of the released version; NULL: it is to be deleted
    wanted_at    text NOT NULL DEFAULT '', -- commit
    applied      jsonb,         -- manifest that was reached in full last
    applied_at   text NOT NULL DEFAULT '',
    expires      timestamptz,   -- NULL: never
    noticed      timestamptz,   -- when its end was announced
    paused       boolean NOT NULL DEFAULT false,
    may_delete   timestamptz NOT NULL DEFAULT '-infinity', -- until when what a person said counts: that it may end
    retry        boolean NOT NULL DEFAULT false, -- a person asked for another job
    problem      text NOT NULL DEFAULT '', -- why it is not as wanted, for people
    CONSTRAINT cluster_ended CHECK ((state = 'terminated') = (ended IS NOT NULL))
);
CREATE UNIQUE INDEX cluster_name ON cluster (environment, name) WHERE state <> 'terminated';
CREATE INDEX cluster_of_environment ON cluster (environment, number);
CREATE INDEX cluster_expires ON cluster (expires) WHERE state <> 'terminated' AND expires IS NOT NULL;

-- Sensitive fields that a user gave for a cluster. They are kept by name since they are given before the file of the
-- cluster is in Git, and deleted with the cluster.
CREATE TABLE cluster_secret (
    environment uuid NOT NULL CONSTRAINT cluster_secret_environment REFERENCES environment ON DELETE CASCADE,
    cluster     text NOT NULL,
    field       text NOT NULL,
    sealed      bytea NOT NULL,
    made        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (environment, cluster, field)
);

-- A machine is recorded before its provider is asked for it, and gone only when the provider has said so.
CREATE TABLE cluster_node (
    cluster  uuid NOT NULL CONSTRAINT cluster_node_cluster REFERENCES cluster ON DELETE CASCADE,
    number   integer NOT NULL,
    hostname text NOT NULL,
    hardware text NOT NULL,
    image    text NOT NULL,
    provider text NOT NULL,
    services jsonb NOT NULL DEFAULT '{}', -- by name: {"phase": how far it is, "config": digest of its configuration}
    state    text NOT NULL CHECK (state IN ('planned', 'made', 'gone')), -- made: there may be a machine
    ready    boolean NOT NULL DEFAULT false,    -- it was bootstrapped
    automators text[] NOT NULL DEFAULT '{}',    -- that it was bootstrapped for
    facts    jsonb NOT NULL DEFAULT '{}', -- what plug-ins returned
    sealed   bytea,                       -- what plug-ins returned as secret
    made     timestamptz,
    gone     timestamptz,
    PRIMARY KEY (cluster, number)
);

-- One job of a cluster runs at a time.
CREATE TABLE cluster_job (
    id       uuid PRIMARY KEY,
    cluster  uuid NOT NULL CONSTRAINT cluster_job_cluster REFERENCES cluster ON DELETE CASCADE,
    number   integer NOT NULL,
    action   text NOT NULL CHECK (action <> ''),
    state    text NOT NULL CHECK (state IN ('running', 'complete', 'failed', 'aborted')),
    goal     jsonb,   -- manifest; NULL: no machines
    prior    jsonb,   -- manifest that the cluster had before; NULL: none
    at       text NOT NULL DEFAULT '', -- commit
    made_by  text NOT NULL,
    made     timestamptz NOT NULL DEFAULT now(),
    ended    timestamptz,
    total    integer NOT NULL DEFAULT 0, -- tasks
    problem  text NOT NULL DEFAULT '',
    CONSTRAINT cluster_job_number UNIQUE (cluster, number),
    CONSTRAINT cluster_job_ended CHECK ((state = 'running') = (ended IS NULL))
);
CREATE UNIQUE INDEX cluster_job_running ON cluster_job (cluster) WHERE state = 'running';

-- waiting ──what it needs is complete──▶ ready ──taken──▶ running ──▶ complete
--                                          ▲──back-off──────┴──▶ failed;  waiting, ready ──▶ dropped
CREATE TABLE cluster_task (
    id         uuid PRIMARY KEY,
    job        uuid NOT NULL CONSTRAINT cluster_task_job REFERENCES cluster_job ON DELETE CASCADE,
    number     integer NOT NULL,
    cluster    uuid NOT NULL,
    project    uuid NOT NULL,
    node       integer NOT NULL,
    service    text NOT NULL DEFAULT '',
    action     text NOT NULL,
    provider   text NOT NULL,          -- for its limit
    needs      integer[] NOT NULL,     -- numbers of tasks of the job, on the same node
    after      text[] NOT NULL,        -- groups of tasks: it waits for all of each
    open_needs integer NOT NULL CHECK (open_needs >= 0), -- of both, how many are not complete
    state      text NOT NULL CHECK (state IN ('waiting', 'ready', 'running', 'complete', 'failed', 'dropped')),
    attempts   integer NOT NULL DEFAULT 0,
    config     text NOT NULL DEFAULT '', -- of configure and start: digest of the configuration
    replace    boolean NOT NULL DEFAULT false, -- of a create: delete first what the attempt before made
    not_before timestamptz NOT NULL DEFAULT '-infinity',
    fence      bigint NOT NULL DEFAULT 0, -- of the newest lease
    lease_to   timestamptz,
    taken_by   text NOT NULL DEFAULT '',  -- name of the provisioner
    started    timestamptz,
    ended      timestamptz,
    output     text NOT NULL DEFAULT '',  -- the last of it
    problem    text NOT NULL DEFAULT '',
    CONSTRAINT cluster_task_number UNIQUE (job, number),
    CONSTRAINT cluster_task_leased CHECK ((state = 'running') = (lease_to IS NOT NULL)),
    CONSTRAINT cluster_task_needs CHECK (state NOT IN ('ready', 'running') OR open_needs = 0)
);
CREATE INDEX cluster_task_on_node ON cluster_task (job, node) WHERE state = 'waiting';
CREATE INDEX cluster_task_open ON cluster_task (job) WHERE state IN ('waiting', 'ready', 'running');
CREATE INDEX cluster_task_ready ON cluster_task (project, not_before) WHERE state = 'ready';
CREATE INDEX cluster_task_leased_to ON cluster_task (lease_to) WHERE state = 'running';
-- One task at a time on a machine, whatever its job.
CREATE UNIQUE INDEX cluster_task_of_node ON cluster_task (cluster, node) WHERE state = 'running';

-- All tasks of a job with one action and one service are a group, as "start mysql-server". Others wait for the group, so
-- that a job has as many edges as tasks, and not as pairs of nodes.
CREATE TABLE cluster_task_group (
    job  uuid NOT NULL CONSTRAINT cluster_task_group_job REFERENCES cluster_job ON DELETE CASCADE,
    name text NOT NULL,
    open integer NOT NULL CHECK (open >= 0), -- tasks that are not complete
    PRIMARY KEY (job, name)
);

-- Provisioners that run elsewhere. They serve one project for their life.
CREATE TABLE provisioner (
    id       uuid PRIMARY KEY,
    project  uuid NOT NULL CONSTRAINT provisioner_project REFERENCES project ON DELETE CASCADE,
    name     text NOT NULL CHECK (name <> ''),
    joined   timestamptz NOT NULL,
    revoked  timestamptz,
    seen     timestamptz,
    program  text NOT NULL DEFAULT '',
    room     integer NOT NULL DEFAULT 0, -- tasks at a time, as it says
    serial   text NOT NULL,              -- of its certificate
    expires  timestamptz NOT NULL,       -- of its certificate
    problem  text NOT NULL DEFAULT '',
    CONSTRAINT provisioner_name UNIQUE (project, name)
);
CREATE TABLE provisioner_token (
    id      uuid PRIMARY KEY,
    project uuid NOT NULL CONSTRAINT provisioner_token_project REFERENCES project ON DELETE CASCADE,
    name    text NOT NULL CHECK (name <> ''),
    hash    text NOT NULL, -- SHA-256 of the secret
    made    timestamptz NOT NULL,
    made_by text NOT NULL,
    expires timestamptz NOT NULL,
    used    timestamptz,
    revoked timestamptz
);

-- The clusters of a version: what stands in the cluster files of its commit, by name. A version without a row says
-- nothing about clusters: it was compiled by a program that did not know of them.
CREATE TABLE version_clusters (
    environment uuid NOT NULL,
    version     integer NOT NULL,
    manifests   jsonb NOT NULL,
    PRIMARY KEY (environment, version),
    CONSTRAINT version_clusters_version FOREIGN KEY (environment, version) REFERENCES version ON DELETE CASCADE
);

-- A machine of a pool is lent to one node at a time, by its address: also if several pools, or projects, have it.
CREATE TABLE cluster_loan (
    project  uuid NOT NULL CONSTRAINT cluster_loan_project REFERENCES project,
    provider text NOT NULL,
    machine  text PRIMARY KEY,
    cluster  uuid NOT NULL,
    node     integer NOT NULL,
    lent     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT cluster_loan_node FOREIGN KEY (cluster, node) REFERENCES cluster_node
);
CREATE UNIQUE INDEX cluster_loan_of_node ON cluster_loan (cluster, node);
