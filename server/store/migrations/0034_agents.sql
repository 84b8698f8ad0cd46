-- Agents on their targets, and what the agent server needs to talk to them (docs/agent-protocol.md).

-- The authority that signs the certificates of agents. Its key is sealed with the server's secret key.
CREATE TABLE agent_authority (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    certificate bytea NOT NULL, -- DER
    sealed      bytea NOT NULL,
    made        timestamptz NOT NULL DEFAULT now()
);

-- A join token makes one agent, once. Rows stay for a while after their end, so that people see what happened.
CREATE TABLE agent_join_token (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT agent_join_token_environment REFERENCES environment ON DELETE CASCADE,
    agent       text NOT NULL CHECK (agent <> ''),
    hash        text NOT NULL, -- SHA-256 of the secret
    made        timestamptz NOT NULL,
    made_by     text NOT NULL,
    expires     timestamptz NOT NULL,
    used        timestamptz,
    used_from   text NOT NULL DEFAULT '', -- address
    revoked     timestamptz,
    CONSTRAINT agent_join_token_expires_later CHECK (expires > made)
);
CREATE INDEX agent_join_token_of_environment ON agent_join_token (environment);
CREATE INDEX agent_join_token_waiting ON agent_join_token (environment, expires) WHERE used IS NULL AND revoked IS NULL;

-- joined ──▶ revoked ──▶ joined again with a new token; removed rows stay until no certificate of theirs is valid.
CREATE TABLE remote_agent (
    environment uuid NOT NULL CONSTRAINT remote_agent_environment REFERENCES environment ON DELETE CASCADE,
    name        text NOT NULL CHECK (name <> ''),
    state       text NOT NULL CHECK (state IN ('joined', 'revoked', 'removed')),
    joined      timestamptz NOT NULL,
    ended       timestamptz,              -- when it was revoked or removed
    ended_by    text NOT NULL DEFAULT '',
    program     text NOT NULL DEFAULT '', -- with its version, as the agent says
    machine     jsonb NOT NULL DEFAULT '{}',
    last_seq    bigint NOT NULL DEFAULT 0, -- of its commands
    connection  bigint NOT NULL DEFAULT 0, -- how often it has connected: the newest connection counts
    replica     uuid,                      -- to which it is connected
    since       timestamptz,               -- when it connected last, or when it was disconnected
    problem     text NOT NULL DEFAULT '',  -- what went wrong with it last, for people
    problem_at  timestamptz,
    PRIMARY KEY (environment, name),
    CONSTRAINT remote_agent_ended CHECK ((state = 'joined') = (ended IS NULL))
);
CREATE INDEX remote_agent_of_replica ON remote_agent (replica) WHERE replica IS NOT NULL;

CREATE TABLE agent_certificate (
    serial      text PRIMARY KEY,
    environment uuid NOT NULL,
    agent       text NOT NULL,
    made        timestamptz NOT NULL,
    expires     timestamptz NOT NULL,
    revoked     timestamptz,
    CONSTRAINT agent_certificate_agent FOREIGN KEY (environment, agent) REFERENCES remote_agent ON DELETE CASCADE
);
CREATE INDEX agent_certificate_of_agent ON agent_certificate (environment, agent);

-- What agents are asked to do: made ──▶ sent ──▶ answered, then deleted by the owner of the environment. Payload and
-- answer are sealed with the server's secret key.
CREATE TABLE agent_command (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL,
    agent       text NOT NULL,
    seq         bigint NOT NULL,
    action      text NOT NULL,
    subject     text NOT NULL DEFAULT '',  -- what a new owner knows it by
    needs       text[] NOT NULL,           -- hashes of contents
    payload     bytea,                     -- NULL once it was answered
    made        timestamptz NOT NULL DEFAULT now(),
    deadline    timestamptz NOT NULL,
    sent        timestamptz,               -- first
    sent_on     bigint NOT NULL DEFAULT 0, -- the connection on which it was sent last
    cancelled   timestamptz,               -- when the owner asked for its end
    cancel_on   bigint NOT NULL DEFAULT 0, -- the connection on which that was sent last
    answered    timestamptz,
    status      text NOT NULL DEFAULT '',
    answer      bytea,
    CONSTRAINT agent_command_seq UNIQUE (environment, agent, seq),
    CONSTRAINT agent_command_agent FOREIGN KEY (environment, agent) REFERENCES remote_agent ON DELETE CASCADE,
    CONSTRAINT agent_command_answered CHECK ((answered IS NULL) = (payload IS NOT NULL) AND (answered IS NULL) = (status = ''))
);
CREATE INDEX agent_command_open ON agent_command (environment, agent, seq) WHERE answered IS NULL;

-- Code, wheels and the Python runtime, by SHA-256, for agents that lack them.
CREATE TABLE agent_content (
    hash text PRIMARY KEY,
    size bigint NOT NULL,
    used timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE agent_content_part (
    hash   text NOT NULL REFERENCES agent_content ON DELETE CASCADE,
    number integer NOT NULL, -- from 0; all parts but the last have the same size
    data   bytea NOT NULL,
    PRIMARY KEY (hash, number)
);
ALTER TABLE agent_content_part ALTER COLUMN data SET STORAGE EXTERNAL;
