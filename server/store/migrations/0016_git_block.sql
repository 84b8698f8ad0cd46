-- Commits that a person took back: they are not compiled or released in this
-- environment until somebody frees them.
CREATE TABLE git_block (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT git_block_environment REFERENCES environment ON DELETE CASCADE,
    commit      text NOT NULL CHECK (commit <> ''),
    by          text NOT NULL CHECK (by <> ''),
    reason      text NOT NULL,
    at          timestamptz NOT NULL,
    ended       timestamptz
);
CREATE UNIQUE INDEX git_block_once ON git_block (environment, commit) WHERE ended IS NULL;
