-- name: RequestAdd :exec
INSERT INTO request (environment, kind, detail) VALUES ($1, $2, $3);

-- name: RequestList :many
SELECT id, environment, kind, detail, made, taken FROM request WHERE environment = $1 AND id > $2 ORDER BY id LIMIT 1000;

-- name: RequestTaken :exec
UPDATE request SET taken = $3 WHERE environment = $1 AND id = $2 AND taken IS NULL;

-- name: RequestDone :exec
DELETE FROM request WHERE environment = $1 AND id = ANY($2);

-- name: RequestWaiting :many
-- The environments with requests.
SELECT environment FROM request
UNION SELECT environment FROM compile WHERE $1 AND started IS NULL AND completed IS NULL;
