-- Credentials that all environments of a project share, and the keys of the SSH
-- servers that its repositories lie on.
CREATE TABLE project_secret (
    project uuid NOT NULL CONSTRAINT project_secret_project REFERENCES project ON DELETE CASCADE,
    name text NOT NULL CHECK (name <> ''),
    sealed bytea NOT NULL,
    PRIMARY KEY (project, name)
);

ALTER TABLE project ADD COLUMN known_hosts text NOT NULL DEFAULT '';
