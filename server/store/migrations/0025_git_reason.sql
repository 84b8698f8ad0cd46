-- What distinguishes a failure to read a repository from another one, so that people
-- hear of each once, also when the server was started anew in between.
ALTER TABLE git_state ADD COLUMN reason text NOT NULL DEFAULT '';
