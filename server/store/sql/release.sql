-- name: VersionRetire :exec
UPDATE version SET status = 'retired' WHERE environment = $1 AND status = 'active' AND number < $2;

-- name: VersionSkip :exec
UPDATE version SET status = 'skipped_candidate' WHERE environment = $1 AND status = 'candidate' AND number < $2;

-- name: VersionActivate :exec
-- The hold stays, with the person who confirmed it, $4.
UPDATE version SET status = 'active', released = $3, confirmed = $4::json, hold = CASE WHEN $4::json IS NOT NULL THEN hold END
WHERE environment = $1 AND number = $2;

-- name: VersionEdges :many
SELECT c.resource, r.id, c.requires, c.undefined <> '{}' AS undefined
FROM version v, unnest(v.contents) AS k(key), resource_content c, resource r
WHERE v.environment = $1 AND v.number = $2 AND c.key = k.key AND r.key = c.resource;

-- name: ReleaseStates :exec
-- Updates the states of resources whose content changed; states of resources that were never seen before are inserted
-- and counted. $3 are the resources that are undefined or depend on one that is. A resource is compliant again at
-- once only when exactly this intent was deployed last, with success, and nothing is running that could spoil it. A
-- resource that comes back is deployed again, because nobody looked after it meanwhile. The scheduler has the same
-- rules (renew); a test compares the two.
WITH after AS MATERIALIZED (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2
), new AS MATERIALIZED (
    SELECT c.resource, c.key AS content, c.attribute_hash AS hash, c.undefined <> '{}' AS undefined,
           c.resource = ANY ($3::bigint[]) AS blocked, c.purged
    FROM after JOIN resource_content c ON c.key = after.k
    WHERE after.k NOT IN (SELECT content FROM resource_state WHERE environment = $1 AND orphaned = 0)
), ahead_of_it AS (
    SELECT r.key FROM ahead a, unnest(a.resources, a.actions) AS x(resource, action) JOIN resource r ON r.environment = $1 AND r.id = x.resource
    WHERE a.environment = $1 AND NOT EXISTS (SELECT FROM action WHERE id = x.action)
), known AS (
UPDATE resource_state s SET
    content = new.content,
    intent_hash = new.hash,
    orphaned = 0,
    deployed_hash = CASE WHEN s.orphaned = 0 THEN s.deployed_hash ELSE '' END,
    compliance = CASE
        WHEN new.undefined THEN 'undefined'
        WHEN s.intent_hash = new.hash AND s.orphaned = 0 AND s.compliance <> 'undefined' THEN s.compliance
        WHEN s.orphaned = 0 AND s.deployed_hash = new.hash AND s.last_run = 'successful' AND NOT s.is_deploying
             AND s.resource NOT IN (SELECT key FROM ahead_of_it) THEN 'compliant'
        ELSE 'has_update' END,
    blocked = CASE
        WHEN new.blocked THEN 'blocked'
        WHEN s.blocked = 'blocked' OR s.intent_hash <> new.hash OR s.orphaned > 0 THEN 'not_blocked'
        ELSE s.blocked END,
    attempts = CASE WHEN s.intent_hash = new.hash AND s.orphaned = 0 THEN s.attempts ELSE 0 END,
    parked = CASE WHEN s.intent_hash = new.hash AND s.orphaned = 0 THEN s.parked ELSE '' END,
    parked_at = CASE WHEN s.intent_hash = new.hash AND s.orphaned = 0 THEN s.parked_at END,
    retry_at = CASE WHEN s.intent_hash = new.hash AND s.orphaned = 0 THEN s.retry_at END,
    failed_code = CASE WHEN s.intent_hash = new.hash AND s.orphaned = 0 THEN s.failed_code ELSE '' END,
    heals = CASE WHEN s.intent_hash = new.hash AND s.orphaned = 0 THEN s.heals ELSE '[]' END,
    drifted = s.drifted AND s.intent_hash = new.hash AND s.orphaned = 0,
    kept_requires = CASE
        WHEN NOT new.purged THEN '{}'
        ELSE (SELECT CASE WHEN o.purged THEN s.kept_requires ELSE o.requires END FROM resource_content o WHERE o.key = s.content) END
FROM new
WHERE s.resource = new.resource
RETURNING s.resource
)
INSERT INTO resource_state (resource, environment, content, compliance, blocked, intent_hash)
SELECT resource, $1, content,
       CASE WHEN undefined THEN 'undefined' ELSE 'has_update' END,
       CASE WHEN blocked THEN 'blocked' ELSE 'not_blocked' END,
       hash
FROM new WHERE resource NOT IN (SELECT resource FROM known);

-- name: ReleaseOrphans :exec
-- Resources of the version before that this one does not have: their last version is the newest released one before
-- this.
UPDATE resource_state s SET
    orphaned = (SELECT max(v.number) FROM version v WHERE v.environment = $1 AND v.released IS NOT NULL AND v.number < $2)
WHERE s.environment = $1 AND s.orphaned = 0
  AND s.content NOT IN (SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2);

-- name: ReleaseDrift :exec
-- Open records belong to an intent that is gone.
UPDATE drift d SET ended = GREATEST($2, d.since), ending = 'superseded'
FROM resource r JOIN resource_state s ON s.resource = r.key
WHERE d.environment = $1 AND d.ended IS NULL AND r.environment = $1 AND r.id = d.resource AND (s.orphaned > 0 OR NOT s.drifted);

-- name: ReleaseBlocked :exec
-- Resources that did not change but became blocked, or are no longer blocked.
UPDATE resource_state s SET
    blocked = CASE WHEN s.resource = ANY ($2::bigint[]) THEN 'blocked' ELSE 'not_blocked' END
WHERE s.environment = $1 AND s.orphaned = 0
  AND (s.blocked = 'blocked') <> (s.resource = ANY ($2::bigint[]));

-- name: ReleaseAgents :exec
INSERT INTO agent (environment, name)
SELECT DISTINCT $1::uuid, r.agent
FROM resource_state s JOIN resource r ON r.key = s.resource
WHERE s.environment = $1 AND s.orphaned = 0
ON CONFLICT (environment, name) DO NOTHING;
