-- name: ParameterSet :exec
INSERT INTO parameter (id, environment, name, resource, value, source, updated, expires, metadata, set_by, changed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $7)
ON CONFLICT (environment, resource, name) DO UPDATE SET
    value = excluded.value, source = excluded.source, updated = excluded.updated, expires = excluded.expires, metadata = excluded.metadata,
    set_by = excluded.set_by,
    changed = CASE WHEN parameter.value = excluded.value THEN parameter.changed ELSE excluded.changed END;

-- name: ParameterGet :one
SELECT id, name, resource, value, source, updated, expires, metadata, set_by
FROM parameter WHERE environment = $1 AND name = $2 AND resource = $3;

-- name: ParameterRows :list
SELECT id, name, resource, value, source, updated, expires, metadata, set_by FROM parameter WHERE environment = $1 AND resource = '';

-- name: FactRows :list
SELECT id, name, resource, value, source, updated, expires, metadata, set_by FROM parameter WHERE environment = $1 AND resource <> '';

-- name: ParameterDelete :exec
DELETE FROM parameter WHERE environment = $1 AND name = $2 AND resource = $3;

-- name: FactRequestAdd :exec
INSERT INTO fact_request (environment, resource, asked) SELECT $1, r, $3 FROM unnest($2::text[]) AS r
ON CONFLICT (environment, resource) DO UPDATE SET asked = excluded.asked;

-- name: FactRequestList :many
SELECT resource FROM fact_request WHERE environment = $1 ORDER BY asked, resource;

-- name: FactRequestDone :exec
DELETE FROM fact_request WHERE environment = $1 AND resource = ANY ($2::text[]);

-- name: FactsDue :many
-- The resources of the active version that have facts which expire, with the time when the oldest was learnt, and
-- those whose facts the model waits for (unknown).
SELECT p.resource, min(p.updated) AS updated, false AS unknown
FROM parameter p JOIN resource r ON r.environment = $1 AND r.id = p.resource
JOIN resource_state s ON s.resource = r.key AND s.orphaned = 0
WHERE p.environment = $1 AND p.resource <> '' AND p.expires
GROUP BY p.resource
UNION ALL
SELECT DISTINCT u.one ->> 'resource', NULL::timestamptz, true
FROM version v, json_array_elements(v.unknowns) AS u(one)
JOIN resource r ON r.environment = $1 AND r.id = u.one ->> 'resource'
JOIN resource_state s ON s.resource = r.key AND s.orphaned = 0
WHERE v.environment = $1 AND v.status = 'active' AND coalesce(u.one ->> 'resource', '') <> ''
  AND NOT EXISTS (SELECT FROM parameter p WHERE p.environment = $1 AND p.resource = u.one ->> 'resource' AND p.name = u.one ->> 'parameter')
ORDER BY 1;

-- name: UnknownsKnown :many
-- Of the values that the newest version did without, those that became known since its compile began, and since the
-- last compile that failed began.
SELECT p.name, p.resource
FROM (SELECT * FROM version WHERE environment = $1 AND NOT preview ORDER BY number DESC LIMIT 1) AS v
LEFT JOIN compile c ON c.id = v.compile,
     json_array_elements(v.unknowns) AS u(one)
JOIN parameter p ON p.environment = $1 AND p.name = u.one ->> 'parameter' AND p.resource = coalesce(u.one ->> 'resource', '')
WHERE p.changed > coalesce(c.started, v.created)
  AND p.changed > coalesce((SELECT max(l.started) FROM compile l
                            WHERE l.environment = $1 AND l.completed IS NOT NULL AND l.export AND NOT l.preview AND l.substitute IS NULL), '-infinity')
ORDER BY p.resource, p.name;
