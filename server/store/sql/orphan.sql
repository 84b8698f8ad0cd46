-- name: OrphanRows :list
-- Resources that the active version does not have and an earlier one had: last_version is the last that had it, and gone the
-- one that was released after that; null when the environment went back to an earlier one.
SELECT r.id, r.type, r.agent, r.value, s.orphaned AS last_version, gone.number AS gone_version, gone.released AS gone_at,
       s.last_run, s.last_run_at, s.last_success, s.last_deployed
FROM resource_state s JOIN resource r ON r.key = s.resource
LEFT JOIN LATERAL (SELECT v.number, v.released FROM version v
                   WHERE v.environment = $1 AND v.number > s.orphaned AND v.released IS NOT NULL ORDER BY v.number LIMIT 1) AS gone ON true
WHERE s.environment = $1 AND s.orphaned > 0;
