-- A version that takes away much is held: it stays a candidate, with the
-- numbers, until a person confirms it, a newer one is released, or what it is
-- compared with lets it pass.
--
-- candidate ──release──▶ active            (takes away little)
--     └─────release──▶ held ──confirm──▶ active
--                       └───(a newer one is released)──▶ skipped_candidate
ALTER TABLE version
    ADD COLUMN hold json,
    ADD COLUMN confirmed json,
    ADD CONSTRAINT version_confirmed_when_held CHECK (confirmed IS NULL OR (hold IS NOT NULL AND released IS NOT NULL)),
    ADD CONSTRAINT version_held_is_not_released CHECK (released IS NULL OR hold IS NULL OR confirmed IS NOT NULL);

-- What people should hear of. The same again, before anybody read it, is
-- counted and not repeated.
CREATE TABLE notification (
    id          uuid PRIMARY KEY,
    environment uuid NOT NULL CONSTRAINT notification_environment REFERENCES environment ON DELETE CASCADE,
    created     timestamptz NOT NULL, -- of the first
    last        timestamptz NOT NULL, -- of the last
    times       integer NOT NULL DEFAULT 1 CHECK (times > 0),
    severity    text NOT NULL CHECK (severity IN ('message', 'info', 'success', 'warning', 'error')),
    title       text NOT NULL CHECK (title <> ''),
    message     text NOT NULL,
    uri         text, -- of the API, what it is about
    compile     uuid,
    read        boolean NOT NULL DEFAULT false,
    cleared     boolean NOT NULL DEFAULT false,
    CONSTRAINT notification_last_is_not_before_created CHECK (last >= created)
);
CREATE INDEX notification_by_created ON notification (environment, created, id);
CREATE INDEX notification_by_last ON notification (environment, last, id);
CREATE INDEX notification_unread ON notification (environment, title) WHERE NOT read AND NOT cleared;
