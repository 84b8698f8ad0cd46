-- Each statement of the search looks through the newest rows of each environment ($1), at most $4 of them by an index,
-- for a text: $2 is the pattern of texts that contain it, $3 the text itself. It returns at most $5 rows. exact: the
-- text names the row, and does not only occur in it.

-- name: SearchRuns :many
SELECT c.environment, c.id::text AS key, coalesce(c.version, 0) AS number, coalesce(c.revision->>'commit', '') AS commit,
       coalesce(nullif(c.revision->>'subject', ''), c.trigger_message) AS title, coalesce(c.revision->>'author', '') AS by,
       CASE WHEN c.cancelled_why <> '' THEN c.cancelled_by || ': ' || c.cancelled_why ELSE c.trigger_message END AS words,
       CASE WHEN c.completed IS NULL THEN CASE WHEN c.started IS NULL THEN 'waiting' ELSE 'running' END
            WHEN c.cancelled_by <> '' THEN 'cancelled' WHEN c.success THEN 'succeeded' ELSE 'failed' END AS state,
       c.requested AS at, c.preview,
       coalesce($3 ~ '^[0-9A-Fa-f-]{7,64}$' AND (starts_with(c.revision->>'commit', lower($3)) OR starts_with(c.id::text, lower($3))), false) AS exact
FROM unnest($1::uuid[]) AS e(id) CROSS JOIN LATERAL (
    SELECT * FROM compile WHERE environment = e.id AND substitute IS NULL ORDER BY requested DESC, id DESC LIMIT $4
) c
WHERE $3 ~ '^[0-9A-Fa-f-]{4,64}$' AND (starts_with(c.revision->>'commit', lower($3)) OR starts_with(c.id::text, lower($3)))
   OR c.revision->>'subject' ILIKE $2 OR c.revision->>'author' ILIKE $2 OR c.trigger_message ILIKE $2
   OR c.cancelled_why ILIKE $2 OR c.cancelled_by ILIKE $2
ORDER BY exact DESC, c.requested DESC, c.id DESC LIMIT $5;

-- name: SearchVersions :many
SELECT v.environment, v.number::text AS key, v.number, coalesce(v.provenance->>'commit', '') AS commit,
       coalesce(v.provenance->>'subject', '') AS title, coalesce(v.provenance->>'author', '') AS by,
       coalesce(v.provenance->'rolled_back'->>'reason', '') AS words, v.status AS state, v.created AS at, v.preview,
       coalesce(v.number::text = ltrim(lower($3), 'v') OR $3 ~ '^[0-9A-Fa-f]{7,64}$' AND starts_with(v.provenance->>'commit', lower($3)), false) AS exact
FROM unnest($1::uuid[]) AS e(id) CROSS JOIN LATERAL (
    SELECT environment, number, provenance, status, created, preview FROM version WHERE environment = e.id ORDER BY number DESC LIMIT $4
) v
WHERE v.number::text = ltrim(lower($3), 'v')
   OR $3 ~ '^[0-9A-Fa-f]{4,64}$' AND starts_with(v.provenance->>'commit', lower($3))
   OR v.provenance->>'subject' ILIKE $2 OR v.provenance->>'author' ILIKE $2
   OR v.provenance->'rolled_back'->>'reason' ILIKE $2 OR v.provenance->'rolled_back'->>'by' ILIKE $2
ORDER BY exact DESC, v.created DESC, v.number DESC LIMIT $5;

-- name: SearchWords :many
-- What people said when they rolled back, halted, paused, approved and so on.
SELECT i.environment, i.key::text AS key, 0 AS number, '' AS commit, i.agent AS title, i.by, i.reason AS words, i.kind AS state,
       i.at, false AS preview, false AS exact
FROM unnest($1::uuid[]) AS e(id) CROSS JOIN LATERAL (
    SELECT * FROM intervention WHERE environment = e.id ORDER BY key DESC LIMIT $4
) i
WHERE i.kind <> 'block' AND $3 <> '' AND (i.reason ILIKE $2 OR i.by ILIKE $2)
ORDER BY i.at DESC, i.key DESC LIMIT $5;

-- name: SearchPulls :many
SELECT p.environment, p.number::text AS key, p.number::int AS number, p.head AS commit, p.title, p.author AS by, '' AS words, p.state,
       p.updated AS at, false AS preview, $3 = '#' || p.number AS exact
FROM unnest($1::uuid[]) AS e(id) CROSS JOIN LATERAL (
    SELECT * FROM pull WHERE environment = e.id ORDER BY number DESC LIMIT $4
) p
WHERE p.number::text = ltrim($3, '#') OR p.title ILIKE $2 OR p.author ILIKE $2
   OR $3 ~ '^[0-9A-Fa-f]{4,64}$' AND starts_with(p.head, lower($3))
ORDER BY exact DESC, p.updated DESC, p.number DESC LIMIT $5;

-- name: SearchClusters :many
SELECT c.environment, c.name AS key, c.number::int AS number, '' AS commit, c.name AS title, c.owner AS by, c.problem AS words, c.state,
       c.made AS at, c.state = 'terminated' AS preview, lower(c.name) = lower($3) AND c.state <> 'terminated' AS exact
FROM unnest($1::uuid[]) AS e(id) CROSS JOIN LATERAL (
    SELECT * FROM cluster WHERE environment = e.id ORDER BY number DESC LIMIT $4
) c
WHERE c.name ILIKE $2 OR c.owner ILIKE $2
ORDER BY exact DESC, c.number DESC LIMIT $5;

-- name: SearchResources :many
SELECT r.environment, r.id AS key, 0 AS number, '' AS commit, r.value AS title, r.agent AS by, r.type AS words, s.status AS state,
       s.last_run_at AS at, s.orphaned > 0 AS preview, r.id = $3 AS exact
FROM unnest($1::uuid[]) AS e(id) CROSS JOIN LATERAL (
    SELECT * FROM resource WHERE environment = e.id ORDER BY id LIMIT $4
) r JOIN resource_state s ON s.resource = r.key
WHERE r.id ILIKE $2
ORDER BY exact DESC, r.id LIMIT $5;
