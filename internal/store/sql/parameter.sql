-- name: ParameterSet :exec
INSERT INTO parameter (id, environment, name, resource, value, source, updated, expires, metadata)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (environment, resource, name) DO UPDATE SET
    value = excluded.value, source = excluded.source, updated = excluded.updated, expires = excluded.expires, metadata = excluded.metadata;

-- name: ParameterGet :one
SELECT id, name, resource, value, source, updated, expires, metadata
FROM parameter WHERE environment = $1 AND name = $2 AND resource = $3;

-- name: ParameterRows :list
SELECT id, name, resource, value, source, updated, expires, metadata FROM parameter WHERE environment = $1 AND resource = '';

-- name: FactRows :list
SELECT id, name, resource, value, source, updated, expires, metadata FROM parameter WHERE environment = $1 AND resource <> '';

-- name: ParameterDelete :exec
DELETE FROM parameter WHERE environment = $1 AND name = $2 AND resource = $3;
