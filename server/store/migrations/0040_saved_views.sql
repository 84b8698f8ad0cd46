-- since: 35
-- Named filters of the list of resources: those of a person, or, where there are no people, of the environment.
CREATE TABLE saved_view (
    environment uuid NOT NULL CONSTRAINT saved_view_environment REFERENCES environment ON DELETE CASCADE,
    person      uuid CONSTRAINT saved_view_person REFERENCES person ON DELETE CASCADE,
    name        text NOT NULL CONSTRAINT saved_view_name CHECK (length(name) BETWEEN 1 AND 60),
    filter      text NOT NULL CONSTRAINT saved_view_filter CHECK (length(filter) BETWEEN 1 AND 2000),
    saved       timestamptz NOT NULL
);
CREATE UNIQUE INDEX saved_view_taken ON saved_view (environment, coalesce(person::text, ''), name);
CREATE INDEX saved_view_person_index ON saved_view (person);
