-- name: ActionStart :exec
INSERT INTO action (id, environment, kind, resource, version, started, finished, status, change, changes, messages)
SELECT a.id, $1, a.kind, a.resource, a.version, a.started, a.finished, a.status, a.change, a.changes, a.messages
FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[], $10::text[], $11::text[])
     AS a(id, kind, resource, version, started, finished, status, change, changes, messages)
ON CONFLICT (id) DO NOTHING;

-- name: ActionFinish :exec
-- An action that was never started is recorded whole; one that has ended stays as it ended. No two may have the same
-- id.
INSERT INTO action (id, environment, kind, resource, version, started, finished, status, change, changes, messages)
SELECT a.id, $1, a.kind, a.resource, a.version, a.started, a.finished, a.status, a.change, a.changes, a.messages
FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[], $10::text[], $11::text[])
     AS a(id, kind, resource, version, started, finished, status, change, changes, messages)
ON CONFLICT (id) DO UPDATE SET
    finished = excluded.finished, status = excluded.status, change = excluded.change, changes = excluded.changes, messages = excluded.messages
WHERE action.finished IS NULL;

-- name: StateDeploying :exec
-- OFFSET 0 keeps the planner from reading all resources of the environment.
UPDATE resource_state s SET is_deploying = true
FROM unnest($2::text[]) AS x(id), LATERAL (SELECT key FROM resource WHERE environment = $1 AND id = x.id OFFSET 0) r
WHERE s.resource = r.key AND NOT s.is_deploying;

-- name: AheadSet :exec
INSERT INTO ahead (environment, resources, actions) VALUES ($1, $2, $3)
ON CONFLICT (environment) DO UPDATE SET resources = excluded.resources, actions = excluded.actions;

-- name: AheadForget :exec
DELETE FROM ahead WHERE environment = $1;

-- name: StateFinish :exec
-- What follows from the intent (compliance, blocked, attempts, parked …) is written only when the intent is still the
-- one that was deployed. Otherwise, if an older intent was deployed over one that counted as compliant, the newer one
-- must be deployed again.
UPDATE resource_state s SET
    last_run = x.last_run,
    is_deploying = x.is_deploying,
    last_run_at = x.last_run_at,
    last_success = x.last_success,
    last_deployed = x.last_deployed,
    deployed_hash = x.deployed_hash,
    last_events = x.last_events,
    compliance = CASE
        WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.compliance
        WHEN s.orphaned = 0 AND s.compliance IN ('compliant', 'non_compliant') THEN 'has_update'
        ELSE s.compliance END,
    blocked = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.blocked ELSE s.blocked END,
    attempts = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.attempts ELSE s.attempts END,
    parked = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.parked ELSE s.parked END,
    parked_at = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.parked_at ELSE s.parked_at END,
    retry_at = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.retry_at ELSE s.retry_at END,
    failed_code = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.failed_code ELSE s.failed_code END,
    heals = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.heals::jsonb ELSE s.heals END,
    drifted = CASE WHEN s.orphaned = 0 AND s.intent_hash = x.intent_hash THEN x.drifted ELSE s.drifted END
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::timestamptz[], $8::timestamptz[], $9::int[], $10::text[],
            $11::text[], $12::timestamptz[], $13::int[], $14::text[], $15::timestamptz[], $16::timestamptz[], $17::text[], $18::text[], $19::bool[])
     AS x(id, compliance, last_run, blocked, is_deploying, last_run_at, last_success, last_deployed, deployed_hash, intent_hash, last_events, attempts,
          parked, parked_at, retry_at, failed_code, heals, drifted),
     LATERAL (SELECT key FROM resource WHERE environment = $1 AND id = x.id OFFSET 0) r
WHERE s.resource = r.key;

-- name: StateAnyParked :one
SELECT EXISTS (SELECT FROM resource_state WHERE environment = $1 AND parked <> '' AND orphaned = 0);

-- name: StateUnpark :many
-- See scheduler.Unparked.
UPDATE resource_state s SET parked = '', parked_at = NULL, retry_at = NULL, failed_code = '', heals = '[]', attempts = 0,
    compliance = CASE WHEN s.parked = 'contested' AND s.compliance = 'non_compliant' THEN 'has_update' ELSE s.compliance END
FROM resource r
WHERE s.resource = r.key AND s.environment = $1 AND s.parked <> '' AND ($2::text[] IS NULL OR r.id = ANY ($2))
RETURNING r.id;

-- name: ActionCancelOpen :exec
UPDATE action SET finished = $2, status = 'cancelled' WHERE environment = $1 AND finished IS NULL;

-- name: StateNotDeploying :exec
UPDATE resource_state SET is_deploying = false WHERE environment = $1 AND is_deploying;

-- name: StateCutOff :exec
-- See intent.ResourceState.CutOff. StateList says which states these are.
UPDATE resource_state SET is_deploying = false, deployed_hash = '',
    compliance = CASE compliance WHEN 'compliant' THEN 'has_update' ELSE compliance END
WHERE environment = $1 AND (is_deploying OR resource IN (
    SELECT r.key FROM ahead a, unnest(a.resources, a.actions) AS x(resource, action) JOIN resource r ON r.environment = $1 AND r.id = x.resource
    WHERE a.environment = $1 AND NOT EXISTS (SELECT FROM action WHERE id = x.action)));

-- name: ActionDelete :exec
DELETE FROM action WHERE environment = $1 AND started < $2 AND finished IS NOT NULL;

-- name: ActionList :many
SELECT id, environment, kind, resource, version, started, finished, status, change, changes::json, messages::json
FROM action
WHERE environment = $1 AND ($2::text IS NULL OR resource = $2) AND ($3::text = '' OR kind = $3)
ORDER BY started DESC, id DESC
LIMIT $4;

-- name: ResourceLogRows :list
SELECT a.id AS action, a.kind, m.level, m.message, m.moment, m.arguments,
       CASE m.level WHEN 'TRACE' THEN 3 WHEN 'DEBUG' THEN 10 WHEN 'INFO' THEN 20 WHEN 'WARNING' THEN 30 WHEN 'ERROR' THEN 40
                    WHEN 'CRITICAL' THEN 50 ELSE 20 END AS severity,
       a.id::text || to_char(m.ord, 'FM0000000000') AS line
FROM action a,
     ROWS FROM (json_to_recordset(a.messages::json) AS (level text, message text, moment timestamptz, arguments json)) WITH ORDINALITY
         AS m(level, message, moment, arguments, ord)
WHERE a.environment = $1 AND a.resource = $2;

-- name: ActionRecorded :many
-- Those of these actions whose ends are recorded; a cancelled one was cut off.
SELECT id FROM action WHERE environment = $1 AND id = ANY ($2::uuid[]) AND finished IS NOT NULL AND status <> 'cancelled';
