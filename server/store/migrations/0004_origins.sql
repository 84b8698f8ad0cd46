-- Where every value of a version was set, as internal/provenance packs it. It
-- goes when the version goes. Null: the compile did not say.
ALTER TABLE version ADD COLUMN origins bytea;
ALTER TABLE version ALTER COLUMN origins SET STORAGE EXTERNAL; -- it is compressed already
