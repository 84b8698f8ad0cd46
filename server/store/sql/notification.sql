-- name: NotificationLock :exec
-- Until the transaction ends nobody else records a notice in the environment. This is the last lock that a
-- transaction takes, so that none waits here for one that waits for it.
SELECT pg_advisory_xact_lock(hashtextextended('notification ' || $1::text, 0));

-- name: NotificationCountUp :many
-- Counts up an equal notice that is unread; repeated for the same moment it changes nothing. The caller holds
-- NotificationLock.
UPDATE notification SET times = times + (last <> $4)::int, last = GREATEST(last, $4), message = $5, severity = $6, compile = $7
WHERE id = (SELECT id FROM notification
            WHERE environment = $1 AND title = $2 AND uri IS NOT DISTINCT FROM $3 AND NOT read AND NOT cleared
            ORDER BY last DESC LIMIT 1)
RETURNING id;

-- name: NotificationAdd :exec
INSERT INTO notification (id, environment, created, last, severity, title, message, uri, compile, read)
VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9);

-- name: NotificationGet :one
SELECT id, environment, created, last, times, severity, title, message, uri, compile, read, cleared
FROM notification WHERE environment = $1 AND id = $2;

-- name: NotificationMark :one
UPDATE notification SET read = coalesce($3, read), cleared = coalesce($4, cleared)
WHERE environment = $1 AND id = $2
RETURNING id, environment, created, last, times, severity, title, message, uri, compile, read, cleared;

-- name: NotificationMarkAll :exec
UPDATE notification SET read = true WHERE environment = $1 AND NOT read;

-- name: NotificationUnread :one
SELECT count(*) FROM notification WHERE environment = $1 AND NOT read AND NOT cleared;

-- name: NotificationDelete :exec
DELETE FROM notification WHERE environment = $1 AND last < $2;

-- name: NotificationRows :list
SELECT id, environment, created, last, times, severity, title, message, uri, compile, read, cleared FROM notification WHERE environment = $1;
