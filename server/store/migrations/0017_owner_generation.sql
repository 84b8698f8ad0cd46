-- How often a server has taken the environment. What the owner of an earlier
-- time still sends is refused.
ALTER TABLE environment ADD COLUMN owner_generation bigint NOT NULL DEFAULT 0;
