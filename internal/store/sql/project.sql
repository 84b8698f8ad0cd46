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
