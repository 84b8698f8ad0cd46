-- name: Followed :one
-- What an environment has deployed. since is when its commit became the intent after another one.
WITH active AS (
    SELECT number, provenance, provenance->>'commit' AS commit FROM version WHERE environment = $1 AND status = 'active'
), had AS (
    SELECT min(v.released) AS since FROM version v, active a
    WHERE v.environment = $1 AND v.released IS NOT NULL AND v.number > COALESCE((
        SELECT max(o.number) FROM version o, active b
        WHERE o.environment = $1 AND o.released IS NOT NULL AND o.number < b.number AND o.provenance->>'commit' IS DISTINCT FROM b.commit), 0)
), differing AS (
    SELECT r.id FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0 AND s.compliance <> 'compliant'
), drifted AS (
    SELECT resource || ' ' || attribute AS what FROM drift WHERE environment = $1 AND ended IS NULL
)
SELECT a.number AS version, a.provenance, had.since, broke.finished AS broke, COALESCE(broke.resource, '') AS broke_of,
       b.commit IS NOT NULL AS blocked, COALESCE(b.by, '') AS blocked_by, COALESCE(b.reason, '') AS blocked_why, b.at AS blocked_at,
       (SELECT count(*) FROM differing) AS differ, ARRAY(SELECT id FROM differing ORDER BY id LIMIT 3)::text[] AS differ_first,
       (SELECT count(*) FROM drifted) AS drifted, ARRAY(SELECT what FROM drifted ORDER BY what LIMIT 3)::text[] AS drift_first
FROM active a CROSS JOIN had
LEFT JOIN git_block b ON b.environment = $1 AND b.commit = a.commit AND b.ended IS NULL
LEFT JOIN LATERAL (
    SELECT finished, resource FROM action
    WHERE environment = $1 AND kind = 'deploy' AND status IN ('failed', 'unavailable') AND started >= had.since
    ORDER BY started DESC LIMIT 1
) broke ON true;

-- name: FollowedLock :exec
-- Nothing is released in this environment before the transaction ends.
SELECT FROM environment WHERE id = $1 FOR SHARE;

-- name: FollowRename :exec
-- Environments that follow this one follow it under its new name.
UPDATE environment f SET settings = jsonb_set(f.settings, '{follow}', to_jsonb($2::text))
FROM environment old
WHERE old.id = $1 AND old.name <> $2 AND f.project = old.project AND f.settings->>'follow' = old.name;

-- name: PromotionWaiting :one
SELECT id, environment, source, source_name, version, commit, branch, follows, subject, author, since, created, state, gates, checked, asked,
       approved_by, approved_why, approved_at, overridden_by, overridden_why, overridden_at, ended, reason, compile, made, success
FROM promotion WHERE environment = $1 AND state = 'waiting';

-- name: PromotionLast :one
-- The newest promotion that was carried out.
SELECT id, environment, source, source_name, version, commit, branch, follows, subject, author, since, created, state, gates, checked, asked,
       approved_by, approved_why, approved_at, overridden_by, overridden_why, overridden_at, ended, reason, compile, made, success
FROM promotion WHERE environment = $1 AND state = 'promoted' ORDER BY key DESC LIMIT 1;

-- name: PromotionList :many
SELECT id, environment, source, source_name, version, commit, branch, follows, subject, author, since, created, state, gates, checked, asked,
       approved_by, approved_why, approved_at, overridden_by, overridden_why, overridden_at, ended, reason, compile, made, success
FROM promotion WHERE environment = $1 ORDER BY key DESC LIMIT $2;

-- name: PromotionAdd :exec
INSERT INTO promotion (id, environment, source, source_name, version, commit, branch, follows, subject, author, since, created, checked)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12);

-- name: PromotionJudged :exec
UPDATE promotion SET version = $2, since = $3, gates = $4, checked = $5, asked = $6 WHERE id = $1 AND state = 'waiting';

-- name: PromotionApprove :exec
UPDATE promotion SET approved_by = $2, approved_why = $3, approved_at = $4 WHERE id = $1 AND state = 'waiting';

-- name: PromotionPromote :exec
UPDATE promotion SET state = 'promoted', ended = $2, compile = $3, overridden_by = $4, overridden_why = $5, overridden_at = $6
WHERE id = $1 AND state = 'waiting';

-- name: PromotionSupersede :exec
UPDATE promotion SET state = 'superseded', ended = $2, reason = $3 WHERE id = $1 AND state = 'waiting';

-- name: PromotionCompiled :exec
-- Records what a compile made of the commit that was promoted last. A commit that could not be fetched has no
-- revision.
UPDATE promotion p SET success = $2, made = COALESCE($3, p.made)
FROM compile c
WHERE c.id = $1 AND NOT c.preview AND p.environment = c.environment AND p.state = 'promoted'
  AND (p.commit = c.revision->>'commit'
    OR c.revision IS NULL AND EXISTS (SELECT FROM compile o WHERE o.id = p.compile AND (o.id = $1 OR o.substitute = $1)))
  AND p.key = (SELECT max(l.key) FROM promotion l WHERE l.environment = c.environment AND l.state = 'promoted');

-- name: PromotionPauseSet :exec
INSERT INTO promotion_pause (environment, by, reason, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (environment) DO NOTHING;

-- name: PromotionPauseEnd :exec
DELETE FROM promotion_pause WHERE environment = $1;

-- name: PromotionPauseGet :one
SELECT by, reason, at FROM promotion_pause WHERE environment = $1;

-- name: ClearPromotions :exec
DELETE FROM promotion WHERE environment = $1;
