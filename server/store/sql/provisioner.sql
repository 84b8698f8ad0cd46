-- name: ProvisionerTokenAdd :exec
INSERT INTO provisioner_token (id, project, name, hash, made, made_by, expires) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: ProvisionerTokens :many
SELECT id, project, name, made, made_by, expires, used, revoked, hash FROM provisioner_token
WHERE ($1::uuid IS NULL OR project = $1) AND ($2::uuid IS NULL OR id = $2) ORDER BY made DESC LIMIT 1000;

-- name: ProvisionerTokenUse :exec
UPDATE provisioner_token SET used = $2 WHERE id = $1 AND used IS NULL AND revoked IS NULL AND expires > $2;

-- name: ProvisionerTokenRevoke :exec
UPDATE provisioner_token SET revoked = $3 WHERE project = $1 AND id = $2 AND revoked IS NULL AND used IS NULL;

-- name: ProvisionerTokensWaiting :one
SELECT count(*) FROM provisioner_token WHERE project = $1 AND used IS NULL AND revoked IS NULL AND expires > $2;

-- name: ProvisionerTokenForget :exec
DELETE FROM provisioner_token WHERE coalesce(used, revoked, expires) < $1;

-- name: ProvisionerJoin :one
INSERT INTO provisioner (id, project, name, joined, serial, expires) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (project, name) DO UPDATE SET joined = EXCLUDED.joined, revoked = NULL, serial = EXCLUDED.serial,
    expires = EXCLUDED.expires, problem = ''
RETURNING id;

-- name: ProvisionerRenew :exec
UPDATE provisioner SET serial = $3, expires = $4 WHERE id = $1 AND serial = $2 AND revoked IS NULL;

-- name: ProvisionerSeen :exec
UPDATE provisioner SET seen = now(), program = $2, room = $3 WHERE id = $1;

-- name: ProvisionerRevoke :exec
UPDATE provisioner SET revoked = now() WHERE id = $1 AND revoked IS NULL;

-- name: Provisioners :many
SELECT p.id, p.project, p.name, p.joined, p.revoked, p.seen, p.program, p.room, p.serial, p.expires, p.problem,
    (SELECT count(*) FROM cluster_task t WHERE t.state = 'running' AND t.taken_by = p.name AND t.project = p.project) AS running
FROM provisioner p WHERE ($1::uuid IS NULL OR p.project = $1) AND ($2::uuid IS NULL OR p.id = $2) ORDER BY p.project, p.name;

-- name: ProvisionerNamed :one
-- Each request of a provisioner looks it up, so its tasks are not counted.
SELECT id, project, name, joined, revoked, seen, program, room, serial, expires, problem, 0 AS running
FROM provisioner WHERE project = $1 AND name = $2;
