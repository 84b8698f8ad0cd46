-- What a purged resource required in the last released version in which it was
-- kept: only those edges are turned when both ends are purged. Empty for what is kept.
ALTER TABLE resource_state ADD COLUMN kept_requires text[] NOT NULL DEFAULT '{}';

UPDATE resource_state s SET kept_requires = kept.requires
FROM resource_content now, (
    SELECT DISTINCT ON (c.resource) c.resource, c.requires
    FROM version v, unnest(v.contents) AS k(key), resource_content c
    WHERE v.released IS NOT NULL AND c.key = k.key AND NOT c.purged
    ORDER BY c.resource, v.number DESC
) AS kept
WHERE now.key = s.content AND now.purged AND kept.resource = s.resource;
