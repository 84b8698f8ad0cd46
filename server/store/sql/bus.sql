-- name: BusGet :one
SELECT address, host, certificate, credentials FROM bus;

-- name: BusSet :exec
-- Only the process that holds the lock with the name $1, with the fencing number $2, may say where the server is.
UPDATE bus SET address = $3, host = $4, certificate = $5, credentials = $6
WHERE EXISTS (SELECT FROM lock_fence WHERE name = $1 AND fence = $2);
