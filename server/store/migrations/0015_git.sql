-- How it goes between an environment and its repository.
--
--   ok ◀──▶ failing
--    ▲▼
--   unsigned, rewritten, protected, blocked: the newest commit is refused
CREATE TABLE git_state (
    environment uuid PRIMARY KEY CONSTRAINT git_state_environment REFERENCES environment ON DELETE CASCADE,
    kind        text NOT NULL CHECK (kind IN ('ok', 'failing', 'unsigned', 'rewritten', 'protected', 'blocked')),
    commit      text NOT NULL,
    message     text NOT NULL,
    advice      text NOT NULL,
    since       timestamptz NOT NULL,
    checked     timestamptz NOT NULL
);

-- Commits that do not descend from what was deployed, and that a person let through.
CREATE TABLE git_acceptance (
    environment uuid NOT NULL CONSTRAINT git_acceptance_environment REFERENCES environment ON DELETE CASCADE,
    commit      text NOT NULL CHECK (commit <> ''),
    by          text NOT NULL CHECK (by <> ''),
    reason      text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (environment, commit)
);

ALTER TABLE intervention DROP CONSTRAINT intervention_kind_check;
ALTER TABLE intervention ADD CONSTRAINT intervention_kind_check CHECK (kind IN (
    'halt', 'resume', 'pause', 'unpause', 'override', 'override_end', 'accept', 'block', 'unblock', 'rollback', 'approve', 'promote'));
