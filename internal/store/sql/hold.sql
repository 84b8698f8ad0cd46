-- name: Removal :many
-- What version $3 takes away from version $2: what was to be present and is in
-- it no more, or to be absent. Counted by type; the first $4 by id; and the
-- first $4 of those whose id is like one of $5, together with those of them
-- that are to be absent without having been in the version before.
WITH before AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2
), after AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $3
), was AS (
    SELECT c.resource, c.purged FROM (SELECT k FROM before EXCEPT SELECT k FROM after) AS d JOIN resource_content c ON c.key = d.k
), becomes AS (
    SELECT c.resource, c.purged FROM (SELECT k FROM after EXCEPT SELECT k FROM before) AS d JOIN resource_content c ON c.key = d.k
), lost AS MATERIALIZED (
    SELECT r.id, r.type, b.resource IS NOT NULL AS purged, w.resource IS NOT NULL AS known
    FROM was w FULL JOIN becomes b ON b.resource = w.resource JOIN resource r ON r.key = coalesce(w.resource, b.resource)
    WHERE (NOT w.purged AND b.resource IS NULL) OR (b.purged AND w.purged IS NOT TRUE)
)
SELECT 'type' AS kind, type, '' AS id, false AS purged, count(*) AS total, count(*) FILTER (WHERE purged) AS purges
FROM lost WHERE known GROUP BY type
UNION ALL
(SELECT 'first', type, id, purged, 0, 0 FROM lost WHERE known ORDER BY id LIMIT $4)
UNION ALL
(SELECT 'protected', type, id, purged, count(*) OVER (), 0 FROM lost WHERE id LIKE ANY ($5::text[]) ORDER BY id LIMIT $4);

-- name: RemovalLive :one
SELECT count(*) FROM version v, unnest(v.contents) AS k(key), resource_content c
WHERE v.environment = $1 AND v.number = $2 AND c.key = k.key AND NOT c.purged;

-- name: VersionHold :exec
UPDATE version SET hold = $3 WHERE environment = $1 AND number = $2 AND status = 'candidate';

-- name: HeldVersions :many
SELECT environment, number, created, released, status, total, undefined, provenance, hold, confirmed, preview
FROM version WHERE environment = $1 AND status = 'candidate' AND hold IS NOT NULL
ORDER BY number DESC;
