-- Settings that something else than a person decides, and what: the name of a
-- setting to "project.yml".
ALTER TABLE environment ADD COLUMN protected jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(protected) = 'object');
