-- How much a project may use. What has no row has no limit.
CREATE TABLE project_quota (
    project uuid NOT NULL REFERENCES project ON DELETE CASCADE,
    kind    text NOT NULL CHECK (kind IN ('environments', 'resources', 'executors', 'compiles', 'disk')),
    most    bigint NOT NULL CHECK (most >= 0),
    PRIMARY KEY (project, kind)
);
