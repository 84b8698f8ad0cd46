-- since: 35
-- The log of an environment is read in the order in which its actions ended, from any place. Actions that wrote nothing
-- are not in it.
CREATE INDEX action_by_end ON action (environment, finished, id) WHERE finished IS NOT NULL AND messages <> '[]';

-- Who set a parameter last: a person or a token; empty where it was not a request.
ALTER TABLE parameter ADD COLUMN set_by text NOT NULL DEFAULT '';

-- Orphans are few among many.
CREATE INDEX resource_state_orphans ON resource_state (environment) WHERE orphaned > 0;
