-- name: DiscoveredSet :exec
INSERT INTO discovered (environment, id, type, agent, value, discovery, record, found)
SELECT $1, x.id, x.type, x.agent, x.value, x.discovery, x.record::json, x.found
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[]) AS x(id, type, agent, value, discovery, record, found)
ON CONFLICT (environment, id) DO UPDATE SET discovery = excluded.discovery, record = excluded.record, found = excluded.found
WHERE discovered.found <= excluded.found;

-- name: DiscoveredGet :one
SELECT d.id, d.discovery, d.record, d.found,
       EXISTS (SELECT 1 FROM resource r JOIN resource_state s ON s.resource = r.key
               WHERE r.environment = d.environment AND r.id = d.id AND s.orphaned = 0) AS managed
FROM discovered d WHERE d.environment = $1 AND d.id = $2;

-- name: DiscoveredRows :list
SELECT d.id, d.type, d.agent, d.value, d.discovery, d.record, d.found,
       EXISTS (SELECT 1 FROM resource r JOIN resource_state s ON s.resource = r.key
               WHERE r.environment = d.environment AND r.id = d.id AND s.orphaned = 0) AS managed
FROM discovered d WHERE d.environment = $1;

-- name: DiscoveredDelete :exec
DELETE FROM discovered WHERE environment = $1 AND id = ANY ($2::text[]);

-- name: ClearDiscovered :exec
DELETE FROM discovered WHERE environment = $1;
