-- Tokens that prove who sends a call, other than those of sessions. No table holds a token itself.

-- A personal token may do what its owner may do, within its own roles and scope.
CREATE TABLE personal_token (
    id          uuid PRIMARY KEY,
    person      uuid NOT NULL CONSTRAINT personal_token_person REFERENCES person ON DELETE CASCADE,
    name        text NOT NULL CHECK (name <> ''),
    hash        text NOT NULL UNIQUE,
    roles       text[] NOT NULL CHECK (cardinality(roles) > 0),
    project     uuid CONSTRAINT personal_token_project REFERENCES project ON DELETE CASCADE,
    environment uuid CONSTRAINT personal_token_environment REFERENCES environment ON DELETE CASCADE,
    tag         text NOT NULL DEFAULT '',
    created     timestamptz NOT NULL,
    expires     timestamptz NOT NULL,
    last_used   timestamptz,
    CONSTRAINT personal_token_name_taken UNIQUE (person, name),
    CONSTRAINT personal_token_has_one_scope CHECK (num_nonnulls(project, environment, nullif(tag, '')) <= 1)
);

-- A token of an environment is a JWT; its id is the claim jti. Rows of revoked tokens stay for a while, so that people
-- see what happened.
CREATE TABLE environment_token (
    id           uuid PRIMARY KEY,
    environment  uuid NOT NULL CONSTRAINT environment_token_environment REFERENCES environment ON DELETE CASCADE,
    client_types text[] NOT NULL CHECK (cardinality(client_types) > 0 AND client_types <@ '{api,compiler,agent}'),
    idempotent   boolean NOT NULL, -- asking for it again returns the same token
    created_by   text NOT NULL,
    issued       timestamptz NOT NULL,
    expires      timestamptz,
    revoked      timestamptz,
    last_used    timestamptz,
    CONSTRAINT environment_token_idempotent_never_expires CHECK (NOT idempotent OR expires IS NULL)
);
CREATE INDEX environment_token_environment_index ON environment_token (environment);
CREATE UNIQUE INDEX environment_token_idempotent ON environment_token (environment, client_types)
    WHERE idempotent AND revoked IS NULL;

-- The key that signs tokens of environments, sealed with the server's secret key.
CREATE TABLE token_key (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    sealed bytea NOT NULL
);

-- A project's trust in the identity tokens of an issuer such as GitHub: jobs whose token has these claims get a role.
CREATE TABLE token_trust (
    id          uuid PRIMARY KEY,
    project     uuid NOT NULL CONSTRAINT token_trust_project REFERENCES project ON DELETE CASCADE,
    name        text NOT NULL CHECK (name <> ''),
    issuer      text NOT NULL CHECK (issuer <> ''),
    audience    text NOT NULL CHECK (audience <> ''),
    claims      jsonb NOT NULL,
    role        text NOT NULL CHECK (role <> ''),
    environment uuid CONSTRAINT token_trust_environment REFERENCES environment ON DELETE CASCADE, -- NULL: the project
    lifetime    integer NOT NULL CHECK (lifetime > 0), -- seconds
    created     timestamptz NOT NULL,
    created_by  text NOT NULL,
    last_used   timestamptz,
    CONSTRAINT token_trust_name_taken UNIQUE (project, name)
);
CREATE INDEX token_trust_issuer_index ON token_trust (issuer);

-- What a job got for its identity token.
CREATE TABLE job_token (
    hash    text PRIMARY KEY,
    id      uuid NOT NULL UNIQUE,
    trust   uuid NOT NULL CONSTRAINT job_token_trust REFERENCES token_trust ON DELETE CASCADE,
    name    text NOT NULL,
    expires timestamptz NOT NULL
);
CREATE INDEX job_token_trust_index ON job_token (trust);

-- Users of an identity provider are known by what it calls them for ever, not by a name that may go to somebody else.
ALTER TABLE person ADD COLUMN identity text CONSTRAINT person_identity_taken UNIQUE;
