-- name: ActionsBefore :many
-- Searches the action log, newest first: $7 and $8 are the time and the id of the action after the page, or null.
SELECT a.id, a.environment, a.kind, a.resource, a.version, a.started, a.finished, a.status, a.change, a.changes::json, a.messages::json
FROM action a LEFT JOIN resource r ON r.environment = a.environment AND r.id = a.resource
WHERE a.environment = $1 AND ($2 = '' OR r.type = $2) AND ($3 = '' OR r.agent = $3)
  AND ($4 = '' OR EXISTS (SELECT FROM resource_content c WHERE c.resource = r.key AND starts_with(c.attributes ->> $4, $5)))
  AND ($6 = '' OR EXISTS (SELECT FROM json_array_elements(a.messages::json) m WHERE upper(m ->> 'level') = $6))
  AND ($7::timestamptz IS NULL OR a.started <= $7 AND (a.started < $7 OR a.id < $8::uuid))
  AND a.change <> ALL ($9::text[])
ORDER BY a.started DESC, a.id DESC
LIMIT $10;

-- name: ActionsAfter :many
-- The same from an action on, oldest first.
SELECT a.id, a.environment, a.kind, a.resource, a.version, a.started, a.finished, a.status, a.change, a.changes::json, a.messages::json
FROM action a LEFT JOIN resource r ON r.environment = a.environment AND r.id = a.resource
WHERE a.environment = $1 AND ($2 = '' OR r.type = $2) AND ($3 = '' OR r.agent = $3)
  AND ($4 = '' OR EXISTS (SELECT FROM resource_content c WHERE c.resource = r.key AND starts_with(c.attributes ->> $4, $5)))
  AND ($6 = '' OR EXISTS (SELECT FROM json_array_elements(a.messages::json) m WHERE upper(m ->> 'level') = $6))
  AND ($7::timestamptz IS NULL OR a.started >= $7 AND (a.started > $7 OR a.id > $8::uuid))
  AND a.change <> ALL ($9::text[])
ORDER BY a.started, a.id
LIMIT $10;

-- name: ActionsOfRequirements :many
-- The deployments of some resources since a time ($3; null: ever) that made another change than $4, newest first.
SELECT id, environment, kind, resource, version, started, finished, status, change, changes::json, messages::json
FROM action
WHERE environment = $1 AND resource = ANY ($2::text[]) AND kind = 'deploy' AND ($3::timestamptz IS NULL OR started > $3)
  AND ($4 = '' OR change <> $4)
ORDER BY started DESC
LIMIT 10000;

-- name: EnvironmentOwners :many
-- The processes that hold the locks of environments ($1 is the class of these locks), with the keys of the locks.
SELECT l.objid::bigint AS key, r.id, r.name, r.started
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
JOIN replica r ON a.application_name = 'ordain locks ' || r.id
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = ($1::bigint)::oid;

-- name: ServerVersionText :one
SELECT current_setting('server_version'), current_database(), coalesce(host(inet_server_addr()), 'localhost');
