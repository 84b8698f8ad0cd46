-- People, their sessions, and what they may do.

-- A person who may log in. The name is unique whatever its case.
CREATE TABLE person (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (name <> ''),
    method     text NOT NULL CHECK (method IN ('database', 'oidc')),
    password   text NOT NULL DEFAULT '', -- its argon2id hash; empty: no password will do
    disabled   boolean NOT NULL DEFAULT false,
    groups     text[] NOT NULL DEFAULT '{}', -- that an identity provider named at the last login
    created    timestamptz NOT NULL DEFAULT now(),
    last_login timestamptz
);
CREATE UNIQUE INDEX person_name_taken ON person (lower(name));

-- Roles of people's own. Those that every server has are in the program.
CREATE TABLE role (
    name        text PRIMARY KEY CHECK (name <> ''),
    description text NOT NULL,
    labels      text[] NOT NULL,
    verbs       text[] NOT NULL
);

-- A binding gives a person, a group or a token a role in a scope: a project, an environment, all environments with a
-- tag, or else the whole server.
CREATE TABLE role_binding (
    id          uuid PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('user', 'group', 'token')),
    person      uuid CONSTRAINT role_binding_person REFERENCES person ON DELETE CASCADE,
    subject     text NOT NULL DEFAULT '', -- the name of a group, or the id of a token
    role        text NOT NULL,
    project     uuid CONSTRAINT role_binding_project REFERENCES project ON DELETE CASCADE,
    environment uuid CONSTRAINT role_binding_environment REFERENCES environment ON DELETE CASCADE,
    tag         text NOT NULL DEFAULT '',
    created     timestamptz NOT NULL DEFAULT now(),
    created_by  text NOT NULL,
    CONSTRAINT role_binding_has_a_subject CHECK ((kind = 'user') = (person IS NOT NULL) AND (kind = 'user') = (subject = '')),
    CONSTRAINT role_binding_has_one_scope CHECK (num_nonnulls(project, environment, nullif(tag, '')) <= 1)
);
CREATE UNIQUE INDEX role_binding_taken ON role_binding (kind, coalesce(person::text, subject), role, coalesce(project::text, ''),
    coalesce(environment::text, ''), tag);
CREATE INDEX role_binding_person_index ON role_binding (person);

-- Sessions of the console and of the API. The token itself is not kept.
CREATE TABLE session (
    hash     text PRIMARY KEY,
    id       uuid NOT NULL UNIQUE,
    person   uuid NOT NULL CONSTRAINT session_person REFERENCES person ON DELETE CASCADE,
    client   text NOT NULL CHECK (client IN ('console', 'api')),
    address  text NOT NULL,
    agent    text NOT NULL,
    created  timestamptz NOT NULL,
    seen     timestamptz NOT NULL,
    expires  timestamptz NOT NULL, -- unless it is used before
    deadline timestamptz NOT NULL, -- however much it is used
    CONSTRAINT session_expires_before_its_deadline CHECK (expires <= deadline)
);
CREATE INDEX session_person_index ON session (person);
CREATE INDEX session_expires_index ON session (expires);

-- Failed logins of a name or from an address. The subject is a hash, since people type passwords into the wrong field.
CREATE TABLE login_failure (
    kind     text NOT NULL CHECK (kind IN ('user', 'address')),
    subject  text NOT NULL,
    failures integer NOT NULL CHECK (failures >= 0),
    last     timestamptz NOT NULL,
    blocked  timestamptz NOT NULL, -- until then
    PRIMARY KEY (kind, subject)
);

-- The link that makes the first administrator. There is at most one.
CREATE TABLE first_link (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    hash    text NOT NULL,
    expires timestamptz NOT NULL
);
