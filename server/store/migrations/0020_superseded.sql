-- Compiles that were cancelled, for a newer commit was there.
ALTER TABLE compile
    ADD COLUMN superseded_by uuid,
    ADD CONSTRAINT compile_superseded_makes_nothing CHECK (superseded_by IS NULL OR (completed IS NOT NULL AND NOT success AND version IS NULL));
