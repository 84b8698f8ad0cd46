-- name: ComplianceReports :many
-- What differs is the drift that is open; a compliant resource has none.
SELECT r.id, s.compliance, s.last_run, s.blocked, s.is_deploying, s.last_run_at, s.last_success, s.last_deployed,
       s.deployed_hash, s.intent_hash, s.last_events, s.attempts, s.orphaned,
       s.parked, s.parked_at, s.retry_at, s.failed_code, s.heals, s.drifted,
       coalesce(c.attributes ->> 'report_only', '') = 'true' AS report_only,
       coalesce((SELECT json_object_agg(d.attribute, json_build_object('current', d.found, 'desired', d.desired))
                 FROM drift d WHERE d.environment = $1 AND d.resource = r.id AND d.ended IS NULL), '{}') AS differs
FROM resource r
JOIN resource_state s ON s.resource = r.key
JOIN resource_content c ON c.key = s.content
WHERE r.environment = $1 AND r.id = ANY ($2::text[]) AND s.orphaned = 0;
