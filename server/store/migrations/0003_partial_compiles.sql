-- A partial compile exports some resource sets and removes some; the newest
-- version keeps the rest.
ALTER TABLE compile
    ADD COLUMN partial boolean NOT NULL DEFAULT false,
    ADD COLUMN removed_sets text[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT compile_removes_sets_when_partial CHECK (partial OR removed_sets = '{}');
