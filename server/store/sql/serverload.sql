-- name: ServerLoad :one
-- What waits and what is done at the moment, of all environments. Previews are compiles too.
SELECT (SELECT count(*) FROM environment) AS environments,
       (SELECT count(*) FROM environment WHERE halted) AS halted,
       c.waiting AS compiles_waiting, c.running AS compiles_running, c.oldest AS compile_waits_since,
       d.available AS resources_waiting, d.deploying AS resources_deploying,
       o.waiting AS messages_waiting, o.oldest AS message_waits_since,
       (SELECT count(*) FROM agent a JOIN environment e ON e.id = a.environment
        WHERE a.breaker_since IS NOT NULL AND NOT a.paused AND NOT e.halted) AS unreachable,
       (SELECT count(*) FROM remote_agent WHERE state = 'joined') AS remote_agents
FROM (SELECT count(*) FILTER (WHERE c.started IS NULL) AS waiting,
             count(*) FILTER (WHERE c.started IS NOT NULL AND c.substitute IS NULL) AS running,
             min(c.requested) FILTER (WHERE c.started IS NULL) AS oldest
      FROM compile c JOIN environment e ON e.id = c.environment
      WHERE c.completed IS NULL AND NOT e.halted) AS c,
     (SELECT count(*) FILTER (WHERE s.status = 'available') AS available,
             count(*) FILTER (WHERE s.status = 'deploying') AS deploying
      FROM resource_state s JOIN environment e ON e.id = s.environment WHERE NOT e.halted) AS d,
     (SELECT count(*) AS waiting, min(created) AS oldest FROM forge_outbox WHERE state = 'waiting') AS o;

-- name: ServerDeadMessages :many
-- The environments with messages for their forge that nobody tries to send any more, those with the most first.
SELECT o.environment, e.name, count(*) AS n
FROM forge_outbox o JOIN environment e ON e.id = o.environment
WHERE o.state = 'dead'
GROUP BY o.environment, e.name ORDER BY count(*) DESC, e.name LIMIT $1;
