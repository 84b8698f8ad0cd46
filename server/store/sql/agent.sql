-- name: AgentRows :list
SELECT a.name, a.paused, a.paused_by, a.paused_at, COALESCE(n.resources, 0)::int AS resources,
       CASE WHEN a.paused THEN 'paused' ELSE 'up' END AS status, ''::text AS process_name,
       a.breaker_since, a.breaker_probe, a.breaker_pause, a.breaker_failures
FROM agent a
LEFT JOIN (
    SELECT r.agent, count(*) AS resources
    FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0
    GROUP BY r.agent
) AS n ON n.agent = a.name
WHERE a.environment = $1 AND (n.resources > 0 OR a.paused);

-- name: AgentHealth :many
-- How many resources of each agent have which status, the agents by name.
SELECT a.name, a.paused, a.breaker_since IS NOT NULL AS unreachable, COALESCE(n.status, '') AS status,
       COALESCE(n.count, 0)::int AS count
FROM agent a
LEFT JOIN (
    SELECT r.agent, s.status, count(*) AS count
    FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0
    GROUP BY r.agent, s.status
) AS n ON n.agent = a.name
WHERE a.environment = $1 AND (n.count > 0 OR a.paused)
ORDER BY a.name, n.status;

-- name: AgentBreaker :exec
INSERT INTO agent (environment, name, breaker_since, breaker_probe, breaker_pause, breaker_failures) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (environment, name) DO UPDATE SET
    breaker_since = excluded.breaker_since, breaker_probe = excluded.breaker_probe, breaker_pause = excluded.breaker_pause,
    breaker_failures = excluded.breaker_failures;

-- name: AgentPause :exec
INSERT INTO agent (environment, name, paused, paused_by, paused_at)
VALUES ($1, $2, $3, CASE WHEN $3 THEN $4::text ELSE '' END, CASE WHEN $3 THEN $5::timestamptz END)
ON CONFLICT (environment, name) DO UPDATE SET paused = excluded.paused, paused_by = excluded.paused_by, paused_at = excluded.paused_at
WHERE agent.paused <> excluded.paused;

-- name: AgentPauseAll :exec
UPDATE agent SET paused = $2, paused_by = CASE WHEN $2 THEN $3::text ELSE '' END, paused_at = CASE WHEN $2 THEN $4::timestamptz END
WHERE environment = $1 AND paused <> $2;

-- name: AgentUnmanaged :many
-- The agents that the released model does not want to be started by the server.
SELECT a.name
FROM version v, json_array_elements_text(v.provenance -> 'unmanaged_agents') AS a (name)
WHERE v.environment = $1 AND v.status = 'active';
