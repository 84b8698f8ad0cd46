-- A page of resources is read in the order of an index, instead of sorting all rows for it.
CREATE INDEX resource_by_type ON resource (environment, type, id);
-- Who requires a resource. Most resources require nothing.
CREATE INDEX resource_content_requires ON resource_content USING gin (requires COLLATE "C") WITH (fastupdate = off) WHERE requires <> '{}';
