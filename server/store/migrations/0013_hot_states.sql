-- A deployment changes the state of its resource three times. With room on the
-- page, and no index over what changes, such a change touches no index.
-- The content of a state is its resource's: found by that key.
ALTER TABLE resource_state SET (fillfactor = 45);
DROP INDEX resource_state_by_content;
