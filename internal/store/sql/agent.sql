-- name: AgentRows :list
SELECT a.name, a.paused, COALESCE(n.resources, 0)::int AS resources,
       CASE WHEN a.paused THEN 'paused' ELSE 'up' END AS status, ''::text AS process_name
FROM agent a
LEFT JOIN (
    SELECT r.agent, count(*) AS resources
    FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0
    GROUP BY r.agent
) AS n ON n.agent = a.name
WHERE a.environment = $1 AND (n.resources > 0 OR a.paused);

-- name: AgentPause :exec
INSERT INTO agent (environment, name, paused) VALUES ($1, $2, $3)
ON CONFLICT (environment, name) DO UPDATE SET paused = excluded.paused;

-- name: AgentPauseAll :exec
UPDATE agent SET paused = $2 WHERE environment = $1 AND paused <> $2;
