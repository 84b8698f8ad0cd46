-- name: Removal :many
-- What version $2 takes away from the active one, whose contents the states have: resources that were to be present
-- and that it no longer has, or that are to be absent now. Counted by type; the first $3 by id; and the first $3 of
-- those whose id is like one of $4, together with those of them that are to be absent without having been in the
-- version before. It also counts the resources, kept or purged, that the version no longer has. Contents of the
-- version before are only looked up where something goes.
WITH after AS MATERIALIZED (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2
), was AS MATERIALIZED (
    SELECT resource, content FROM resource_state WHERE environment = $1 AND orphaned = 0 AND content NOT IN (SELECT k FROM after)
), becomes AS MATERIALIZED (
    SELECT c.resource, c.purged FROM after JOIN resource_content c ON c.key = after.k
    WHERE after.k NOT IN (SELECT content FROM resource_state WHERE environment = $1 AND orphaned = 0)
), goes AS MATERIALIZED (
    SELECT coalesce(w.resource, b.resource) AS resource, w.content, b.resource IS NOT NULL AS purged, w.resource IS NOT NULL AS known
    FROM was w FULL JOIN becomes b ON b.resource = w.resource
    WHERE b.resource IS NULL OR b.purged
), lost AS MATERIALIZED (
    SELECT r.id, r.type, g.purged, g.known
    FROM goes g LEFT JOIN resource_content c ON c.key = g.content JOIN resource r ON r.key = g.resource
    WHERE c.purged IS NOT TRUE
)
SELECT 'type' AS kind, type, '' AS id, false AS purged, count(*) AS total, count(*) FILTER (WHERE purged) AS purges
FROM lost WHERE known GROUP BY type
UNION ALL
(SELECT 'first', type, id, purged, 0, 0 FROM lost WHERE known ORDER BY id LIMIT $3)
UNION ALL
(SELECT 'protected', type, id, purged, count(*) OVER (), 0 FROM lost WHERE id LIKE ANY ($4::text[]) ORDER BY id LIMIT $3)
UNION ALL
SELECT 'left', '', '', false, count(*), 0 FROM goes WHERE NOT purged;

-- name: RemovalLive :one
SELECT count(*) FROM version v, unnest(v.contents) AS k(key), resource_content c
WHERE v.environment = $1 AND v.number = $2 AND c.key = k.key AND NOT c.purged;

-- name: VersionHold :exec
UPDATE version SET hold = $3 WHERE environment = $1 AND number = $2 AND status = 'candidate';

-- name: HeldVersions :many
SELECT environment, number, created, released, status, total, undefined, provenance, hold, confirmed, preview
FROM version WHERE environment = $1 AND status = 'candidate' AND hold IS NOT NULL
ORDER BY number DESC;
