-- since: 35
-- Who cancelled a compile, and why. While it still runs, it is being cancelled; one that ended well in spite of it was
-- not cancelled.
ALTER TABLE compile
    ADD COLUMN cancelled_by text NOT NULL DEFAULT '',
    ADD COLUMN cancelled_why text NOT NULL DEFAULT '',
    ADD COLUMN cancelled_at timestamptz,
    ADD CONSTRAINT compile_cancelled_by_somebody CHECK ((cancelled_by = '') = (cancelled_at IS NULL)),
    ADD CONSTRAINT compile_cancelled_makes_nothing CHECK (cancelled_by = '' OR success IS NOT TRUE);
