-- Roles can be bound to the environments with a tag.
ALTER TABLE environment ADD COLUMN tags text[] NOT NULL DEFAULT '{}';

-- The projects whose members and handlers may read a file: those that stored it. A file without readers was stored by
-- somebody who sees the whole server, or before projects were tenants; everybody who knows its hash may read it.
CREATE TABLE file_reader (
    sha1    text NOT NULL REFERENCES file ON DELETE CASCADE,
    project uuid NOT NULL CONSTRAINT file_reader_project REFERENCES project ON DELETE CASCADE,
    PRIMARY KEY (sha1, project)
);
