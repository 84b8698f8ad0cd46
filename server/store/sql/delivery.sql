-- name: DeliveryRecord :many
-- Records many deliveries at once: $1 are deliveries, $2 their outcomes. Deliveries that an environment has already
-- are left out, and so are those without an outcome.
WITH given AS (
    SELECT * FROM json_to_recordset($1::json) AS x(id uuid, forge text, key text, received timestamptz, size bigint, event json, replay_of uuid, verified boolean)
), took AS (
    INSERT INTO delivery_outcome (delivery, environment, received, forge, key, module, state, reason, handled)
    SELECT x.delivery, x.environment, g.received, g.forge, CASE WHEN g.verified THEN g.key ELSE '' END, x.module, x.state, x.reason, x.handled
    FROM json_to_recordset($2::json) AS x(delivery uuid, environment uuid, module text, state text, reason text, handled timestamptz)
    JOIN given g ON g.id = x.delivery
    JOIN environment e ON e.id = x.environment
    ORDER BY x.environment, g.forge, g.key, g.received, g.id -- the same for all servers, so that they do not wait for each other in a circle
    ON CONFLICT DO NOTHING
    RETURNING delivery, environment
), stored AS (
    INSERT INTO delivery (id, forge, key, received, size, event, replay_of, verified)
    SELECT id, forge, key, received, size, event, replay_of, verified FROM given WHERE id IN (SELECT delivery FROM took)
)
SELECT delivery, environment FROM took;

-- name: DeliveryWaiting :many
SELECT d.id, d.forge, d.key, d.received, d.size, d.event, d.replay_of, d.verified,
       o.environment, e.name, o.module, o.state, o.reason, o.compile, o.handled
FROM delivery_outcome o JOIN delivery d ON d.id = o.delivery JOIN environment e ON e.id = o.environment
WHERE o.environment = $1 AND o.state = 'waiting'
ORDER BY o.received, o.delivery LIMIT $2;

-- name: DeliveryWaitingFor :many
SELECT DISTINCT environment FROM delivery_outcome WHERE state = 'waiting';

-- name: DeliveryFinish :exec
UPDATE delivery_outcome o SET state = x.state, reason = x.reason, compile = x.compile, handled = x.handled
FROM json_to_recordset($2::json) AS x(delivery uuid, state text, reason text, compile uuid, handled timestamptz)
WHERE o.environment = $1 AND o.delivery = x.delivery AND o.state = 'waiting';

-- name: DeliveryGet :one
SELECT d.id, d.forge, d.key, d.received, d.size, d.event, d.replay_of, d.verified,
       o.environment, e.name, o.module, o.state, o.reason, o.compile, o.handled
FROM delivery_outcome o JOIN delivery d ON d.id = o.delivery JOIN environment e ON e.id = o.environment
WHERE o.environment = $1 AND o.delivery = $2;

-- name: DeliveryRows :list
SELECT d.id, d.forge, d.key, o.received, d.size, d.event, d.replay_of, d.verified,
       o.environment, e.name, o.module, o.state, o.reason, o.compile, o.handled,
       coalesce(d.event ->> 'repository', '') AS repository, coalesce(d.event ->> 'ref', '') AS ref,
       coalesce(d.event ->> 'commit', '') AS commit, coalesce(d.event ->> 'kind', '') AS kind
FROM delivery_outcome o JOIN delivery d ON d.id = o.delivery JOIN environment e ON e.id = o.environment
WHERE o.environment = $1;

-- name: OutcomeDelete :exec
DELETE FROM delivery_outcome WHERE environment = $1 AND received < $2 AND state <> 'waiting';

-- name: DeliveryCollect :exec
DELETE FROM delivery d WHERE NOT EXISTS (SELECT FROM delivery_outcome o WHERE o.delivery = d.id);

-- name: ClearDeliveries :exec
DELETE FROM delivery_outcome WHERE environment = $1;

-- name: HookSecrets :many
SELECT environment, name, sealed FROM environment_secret WHERE name IN ('webhook', 'webhook-previous') ORDER BY environment, name;

-- name: ModulesSet :exec
WITH given AS (SELECT name, url FROM unnest($2::text[], $3::text[]) AS x(name, url)),
gone AS (DELETE FROM environment_module WHERE environment = $1 AND name NOT IN (SELECT name FROM given))
INSERT INTO environment_module (environment, name, url) SELECT $1, name, url FROM given
ON CONFLICT (environment, name) DO UPDATE SET url = excluded.url;

-- name: ModulesList :many
SELECT environment, name, url FROM environment_module ORDER BY environment, name;
