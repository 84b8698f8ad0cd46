-- name: DriftOpen :exec
-- Records what an action found: $3 are attributes of the resource $2. Each is recorded once, and only while the
-- intent is the one that the action saw ($9).
INSERT INTO drift (id, environment, resource, attribute, desired, found, version, action, since, seen)
SELECT gen_random_uuid(), $1, $2, x.attribute, x.desired::json, x.found::json, $6, $7, $8, $8
FROM unnest($3::text[], $4::text[], $5::text[]) AS x(attribute, desired, found)
WHERE EXISTS (SELECT FROM resource r JOIN resource_state s ON s.resource = r.key
              WHERE r.environment = $1 AND r.id = $2 AND s.orphaned = 0 AND s.intent_hash = $9)
ON CONFLICT DO NOTHING;

-- name: DriftSeen :exec
UPDATE drift SET found = x.found::json, seen = $5
FROM unnest($3::text[], $4::text[]) AS x(attribute, found)
WHERE drift.environment = $1 AND drift.resource = $2 AND drift.ended IS NULL AND drift.attribute = x.attribute AND drift.seen < $5;

-- name: DriftHeal :exec
UPDATE drift SET ended = GREATEST($4, since), ending = 'healed'
WHERE environment = $1 AND resource = $2 AND ended IS NULL AND attribute = ANY ($3::text[]);

-- name: DriftGone :exec
UPDATE drift SET ended = GREATEST($4, since), ending = 'gone'
WHERE environment = $1 AND resource = $2 AND ended IS NULL AND attribute <> ALL ($3::text[]);

-- name: DriftDelete :exec
DELETE FROM drift WHERE environment = $1 AND ended < $2;

-- name: DriftRows :list
SELECT id, resource, attribute, desired, found, version, since, seen, ended, ending FROM drift WHERE environment = $1;
