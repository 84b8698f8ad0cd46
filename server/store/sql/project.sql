-- name: ProjectCreate :exec
INSERT INTO project (id, name) VALUES ($1, $2);

-- name: ProjectList :many
SELECT id, name FROM project ORDER BY name, id;

-- name: ProjectGet :one
SELECT id, name FROM project WHERE id = $1;

-- name: ProjectRename :exec
UPDATE project SET name = $2 WHERE id = $1;

-- name: ProjectDelete :exec
DELETE FROM project WHERE id = $1;

-- name: ProjectSecretSet :exec
INSERT INTO project_secret (project, name, sealed) VALUES ($1, $2, $3)
ON CONFLICT (project, name) DO UPDATE SET sealed = excluded.sealed;

-- name: ProjectSecretDelete :exec
DELETE FROM project_secret WHERE project = $1 AND name = $2;

-- name: ProjectSecretList :many
SELECT name, sealed FROM project_secret WHERE project = $1;

-- name: ProjectKnownHosts :one
SELECT known_hosts FROM project WHERE id = $1;

-- name: ProjectKnownHostsSet :exec
UPDATE project SET known_hosts = $2 WHERE id = $1;

-- name: ProjectKnownHostsAdd :exec
UPDATE project SET known_hosts = known_hosts || $2 || E'\n' WHERE id = $1 AND position($2 IN known_hosts) = 0;
