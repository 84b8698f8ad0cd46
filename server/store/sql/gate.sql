-- name: OverrideAdd :exec
INSERT INTO override (id, environment, by, reason, agents, created, until) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: OverrideEnd :exec
UPDATE override SET ended = $3, ended_by = $4 WHERE environment = $1 AND id = $2 AND ended IS NULL AND until > $3;

-- name: OverrideGet :one
SELECT id, by, reason, agents, created, until, ended, ended_by FROM override WHERE environment = $1 AND id = $2;

-- name: OverrideList :many
SELECT id, by, reason, agents, created, until, ended, ended_by FROM override
WHERE environment = $1
ORDER BY created DESC, id LIMIT $2;

-- name: InterventionAdd :exec
INSERT INTO intervention (environment, at, by, kind, agent, reason) VALUES ($1, $2, $3, $4, $5, $6);

-- name: InterventionList :many
SELECT at, by, kind, agent, reason FROM intervention WHERE environment = $1 ORDER BY key DESC LIMIT $2;
