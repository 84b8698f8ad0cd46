-- A dry run is of a version, or of a commit that is compiled for it first. It
-- is taken up again after a restart until it ended:
--
-- compiling ──▶ looking ──▶ done
--     ├──────────┴──▶ cancelled
--     └──▶ failed
ALTER TABLE dryrun
    ALTER COLUMN version DROP NOT NULL,      -- until the commit is compiled
    ADD COLUMN asked text NOT NULL DEFAULT '', -- the commit, as it was asked for; empty: a version
    ADD COLUMN compile uuid,                 -- of the commit
    ADD COLUMN filter json NOT NULL DEFAULT '{}',
    ADD COLUMN base integer NOT NULL DEFAULT 0, -- the version that was active
    ADD COLUMN ended timestamptz,
    ADD COLUMN ending text NOT NULL DEFAULT '' CHECK (ending IN ('', 'done', 'cancelled', 'failed')),
    ADD COLUMN reason text NOT NULL DEFAULT '',
    ADD CONSTRAINT dryrun_environment FOREIGN KEY (environment) REFERENCES environment ON DELETE CASCADE;
UPDATE dryrun SET ended = date, ending = 'done' WHERE todo = 0;
ALTER TABLE dryrun
    ADD CONSTRAINT dryrun_ends_somehow CHECK ((ended IS NULL) = (ending = '')),
    ADD CONSTRAINT dryrun_done_when_all_is CHECK (ending <> 'done' OR (todo = 0 AND version IS NOT NULL)),
    ADD CONSTRAINT dryrun_of_a_version_or_a_commit CHECK (version IS NOT NULL OR (asked <> '' AND compile IS NOT NULL));
CREATE INDEX dryrun_open ON dryrun (environment) WHERE ended IS NULL;
CREATE INDEX dryrun_by_date ON dryrun (environment, date);

-- What could not be told is not "no change": unknown, with the reason.
ALTER TABLE dryrun_diff
    DROP CONSTRAINT dryrun_diff_kind_check,
    ADD CONSTRAINT dryrun_diff_kind_check CHECK
        (kind IN ('added', 'modified', 'deleted', 'unmodified', 'agent_down', 'undefined', 'skipped_for_undefined', 'unknown')),
    ADD COLUMN reason text NOT NULL DEFAULT '',
    ADD COLUMN behind text NOT NULL DEFAULT ''; -- what it requires and would be created first

-- A preview is the version of a commit that was only compiled to be looked at.
ALTER TABLE version
    ADD COLUMN preview boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT version_preview_is_not_released CHECK (NOT preview OR released IS NULL);
-- Its compile is beside the queue of the environment.
ALTER TABLE compile ADD COLUMN preview boolean NOT NULL DEFAULT false;
DROP INDEX compile_one_runs;
CREATE UNIQUE INDEX compile_one_runs ON compile (environment)
    WHERE started IS NOT NULL AND completed IS NULL AND substitute IS NULL AND NOT preview;

-- When the value of a parameter last became another: a compile that began
-- before that, and did without the value, is out of date.
ALTER TABLE parameter ADD COLUMN changed timestamptz;
UPDATE parameter SET changed = updated;
ALTER TABLE parameter ALTER COLUMN changed SET NOT NULL;

-- Resources that are to be asked for their facts, until they answered.
CREATE TABLE fact_request (
    environment uuid NOT NULL CONSTRAINT fact_request_environment REFERENCES environment ON DELETE CASCADE,
    resource    text COLLATE "C" NOT NULL, -- its id
    asked       timestamptz NOT NULL,
    PRIMARY KEY (environment, resource)
);
