-- since: 35
-- The version numbers that were given out for versions that are compiled elsewhere, and that no version has had yet. A
-- number is taken away when a version gets it, so that it does not come back when that version is deleted. Numbers that
-- were given out before this table existed have to be reserved again.
CREATE TABLE version_reservation (
    environment uuid NOT NULL CONSTRAINT version_reservation_environment REFERENCES environment ON DELETE CASCADE,
    number      integer NOT NULL,
    PRIMARY KEY (environment, number)
);

-- A page of resources in the order of these is read in the order of an index, as that by type is (0018). They never change.
CREATE INDEX resource_by_agent ON resource (environment, agent, id);
CREATE INDEX resource_by_value ON resource (environment, value, id);
