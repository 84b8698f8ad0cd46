-- name: StateList :many
-- In no order: callers that need one sort. A resource is being deployed when it is marked so, or when it is in the
-- list of what is ahead and the log has no entry of its action.
SELECT r.id, s.compliance, s.last_run, s.blocked,
       s.is_deploying OR r.id IN (
           SELECT x.resource FROM ahead a, unnest(a.resources, a.actions) AS x(resource, action)
           WHERE a.environment = $1 AND NOT EXISTS (SELECT FROM action WHERE id = x.action)) AS is_deploying,
       s.last_run_at, s.last_success, s.last_deployed, s.deployed_hash, s.intent_hash, s.last_events, s.attempts, s.orphaned,
       s.parked, s.parked_at, s.retry_at, s.failed_code, s.heals, s.drifted
FROM resource_state s JOIN resource r ON r.key = s.resource
WHERE s.environment = $1;

-- name: StateCounts :many
SELECT status, count(*) AS count FROM resource_state WHERE environment = $1 AND orphaned = 0 GROUP BY status;

-- name: ResourceRows :list
-- Written so that a page in the order of an index of resource reads no more rows than it shows; only the rows of the
-- page look up a content.
SELECT r.id, r.type, r.agent, r.value, s.status, s.compliance, s.last_run, s.blocked, s.is_deploying, s.last_run_at,
       s.last_success, s.last_deployed, s.deployed_hash, s.intent_hash, s.last_events, s.attempts, s.orphaned,
       s.parked, s.parked_at, s.retry_at, s.failed_code, s.heals, s.drifted,
       CASE WHEN s.orphaned > 0 THEN s.orphaned
            ELSE (SELECT v.number FROM version v WHERE v.environment = $1 AND v.status = 'active') END AS version,
       (SELECT c.requires FROM resource_content c WHERE c.key = s.content) AS requires,
       (SELECT c.purged FROM resource_content c WHERE c.key = s.content) AS purged
FROM resource r JOIN resource_state s ON s.resource = r.key
WHERE r.environment = $1 AND s.environment = $1;

-- name: ResourceCounted :list
-- The same rows, for counting. Every state has its resource, and is joined in a way that lets the planner leave the
-- resource out where no condition needs it. A filter of resources compares these columns.
SELECT r.id, r.type, r.agent, r.value, s.status, s.compliance, s.last_run, s.blocked, s.is_deploying, s.orphaned, s.parked,
       CASE WHEN s.orphaned > 0 THEN s.orphaned
            ELSE coalesce((SELECT v.number FROM version v WHERE v.environment = $1 AND v.status = 'active'), 0) END AS version,
       (SELECT c.purged FROM resource_content c WHERE c.key = s.content) AS purged
FROM resource_state s LEFT JOIN resource r ON r.key = s.resource
WHERE s.environment = $1;

-- name: ResourceWaits :many
-- For what the given resources wait: a paused agent, a target that cannot be reached, or the first requirement that is
-- not deployed. Requirements are looked up one by one until there is one, which LIMIT and OFFSET 0 keep so; and only the
-- first hundred, so that a list stays quick when each of its resources requires thousands.
SELECT r.id, COALESCE(a.paused, false) AS paused, a.breaker_since AS unreachable, COALESCE(need.id, '') AS need,
       COALESCE(need.status, '') AS status
FROM resource r
JOIN resource_state s ON s.resource = r.key
LEFT JOIN agent a ON a.environment = $1 AND a.name = r.agent
LEFT JOIN LATERAL (
    SELECT w.id, ns.status
    FROM unnest((SELECT c.requires[1:100] FROM resource_content c WHERE c.key = s.content)) AS w (id),
         LATERAL (SELECT key FROM resource WHERE environment = $1 AND id = w.id OFFSET 0) nr,
         LATERAL (SELECT status FROM resource_state WHERE resource = nr.key OFFSET 0) ns
    WHERE ns.status <> 'deployed'
    LIMIT 1
) AS need ON true
WHERE r.environment = $1 AND r.id = ANY ($2::text[]);

-- name: ResourceDetail :one
-- OFFSET 0 keeps the planner from reading all states to find those that require it.
SELECT r.id, s.compliance, s.last_run, s.blocked, s.is_deploying, s.last_run_at, s.last_success, s.last_deployed,
       s.deployed_hash, s.intent_hash, s.last_events, s.attempts, s.orphaned,
       s.parked, s.parked_at, s.retry_at, s.failed_code, s.heals, s.drifted,
       CASE WHEN s.orphaned > 0 THEN s.orphaned
            ELSE (SELECT v.number FROM version v WHERE v.environment = $1 AND v.status = 'active') END AS version,
       r.first_seen, c.attributes, c.attribute_hash, c.requires, c.resource_set, c.undefined, c.send_event, c.receive_events, c.purged,
       needs.ids AS requires_known, needs.statuses AS requires_status,
       provides.ids AS provides, provides.statuses AS provides_status
FROM resource r
JOIN resource_state s ON s.resource = r.key
JOIN resource_content c ON c.key = s.content
CROSS JOIN LATERAL (
    SELECT COALESCE(array_agg(nr.id ORDER BY nr.id), '{}') AS ids, COALESCE(array_agg(ns.status ORDER BY nr.id), '{}') AS statuses
    FROM resource nr JOIN resource_state ns ON ns.resource = nr.key
    WHERE nr.environment = $1 AND nr.id = ANY (c.requires)
) AS needs
CROSS JOIN LATERAL (
    SELECT COALESCE(array_agg(dr.id ORDER BY dr.id), '{}') AS ids, COALESCE(array_agg(ds.status ORDER BY dr.id), '{}') AS statuses
    FROM (SELECT resource, key FROM resource_content WHERE requires <> '{}' AND requires @> ARRAY[r.id] OFFSET 0) dc,
         LATERAL (SELECT status FROM resource_state
                  WHERE resource = dc.resource AND content = dc.key AND environment = $1 AND orphaned = 0 OFFSET 0) ds,
         LATERAL (SELECT id FROM resource WHERE key = dc.resource OFFSET 0) dr
) AS provides
WHERE r.environment = $1 AND r.id = $2;

-- name: ResourceHistoryRows :list
-- Each released version in which the resource differs from the version before.
SELECT date, version, attributes, attribute_hash, requires
FROM (
    SELECT v.created AS date, v.number AS version, c.attributes, c.attribute_hash, c.requires,
           lag(c.attribute_hash) OVER (ORDER BY v.number) AS previous
    FROM resource r
    JOIN resource_content c ON c.resource = r.key
    JOIN version v ON v.environment = r.environment AND v.released IS NOT NULL AND c.key = ANY (v.contents)
    WHERE r.environment = $1 AND r.id = $2
) AS each
WHERE previous IS DISTINCT FROM attribute_hash;
