-- What a deployer is about to deploy without another word: resources of the tasks
-- that it recorded before their turn, with the actions that they will be. One row,
-- written whole for many tasks at a time, instead of a mark on the state of each.
-- Those without an entry in the log were cut off, or about to begin, when the row was
-- left behind.
CREATE TABLE ahead (
    environment uuid PRIMARY KEY REFERENCES environment ON DELETE CASCADE,
    resources   text[] COLLATE "C" NOT NULL, -- ids
    actions     uuid[] NOT NULL,
    CONSTRAINT ahead_names_an_action_for_each CHECK (cardinality(resources) = cardinality(actions))
) WITH (fillfactor = 20);

-- Every task writes an entry. The foreign key looked at the environment for each of
-- them: the statements that write them hold its row themselves now, once. The two
-- texts are written as JSON by the one function that writes them, and were read again
-- twice to find that out.
ALTER TABLE action
    DROP CONSTRAINT action_environment,
    DROP CONSTRAINT action_messages_check,
    ALTER COLUMN changes TYPE text USING changes::text,
    ALTER COLUMN messages TYPE text USING messages::text;
