-- name: EnvironmentCreate :exec
INSERT INTO environment (id, project, name, repo_url, repo_branch, repo_subdir, description, icon, halted, settings, created, tags, halted_by, halted_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: EnvironmentList :many
SELECT e.id, e.project, p.name AS project_name, e.name, e.repo_url, e.repo_branch, e.repo_subdir,
       e.description, e.icon, e.halted, e.halted_by, e.halted_at, e.tags, e.settings, e.protected, e.created,
       e.number,
       coalesce((SELECT i.reason FROM intervention i WHERE e.halted AND i.environment = e.id AND i.kind = 'halt'
                 ORDER BY i.key DESC LIMIT 1), '') AS halted_reason,
       (SELECT coalesce(json_agg(o ORDER BY o.until, o.id), '[]') FROM override o
        WHERE o.environment = e.id AND o.ended IS NULL AND o.until > now()) AS overrides
FROM environment e JOIN project p ON p.id = e.project
ORDER BY p.name, e.name, e.id;

-- name: EnvironmentGet :one
SELECT e.id, e.project, p.name AS project_name, e.name, e.repo_url, e.repo_branch, e.repo_subdir,
       e.description, e.icon, e.halted, e.halted_by, e.halted_at, e.tags, e.settings, e.protected, e.created,
       e.number,
       coalesce((SELECT i.reason FROM intervention i WHERE e.halted AND i.environment = e.id AND i.kind = 'halt'
                 ORDER BY i.key DESC LIMIT 1), '') AS halted_reason,
       (SELECT coalesce(json_agg(o ORDER BY o.until, o.id), '[]') FROM override o
        WHERE o.environment = e.id AND o.ended IS NULL AND o.until > now()) AS overrides
FROM environment e JOIN project p ON p.id = e.project
WHERE e.id = $1;

-- name: EnvironmentProject :one
SELECT project FROM environment WHERE id = $1;

-- name: EnvironmentsOf :many
SELECT id FROM environment WHERE project = $1 ORDER BY id;

-- name: EnvironmentExists :one
SELECT EXISTS (SELECT FROM environment WHERE id = $1);

-- name: EnvironmentLock :one
SELECT last_version FROM environment WHERE id = $1 FOR NO KEY UPDATE;

-- name: EnvironmentUpdate :exec
UPDATE environment SET project = $2, name = $3, repo_url = $4, repo_branch = $5, repo_subdir = $6, description = $7, icon = $8
WHERE id = $1;

-- name: EnvironmentTags :exec
UPDATE environment SET tags = $2 WHERE id = $1;

-- name: EnvironmentHalt :exec
UPDATE environment SET halted = $2, halted_by = CASE WHEN $2 THEN $3::text ELSE '' END, halted_at = CASE WHEN $2 THEN $4::timestamptz END
WHERE id = $1 AND halted <> $2;

-- name: EnvironmentDelete :exec
DELETE FROM environment WHERE id = $1;

-- name: ClearActions :exec
DELETE FROM action WHERE environment = $1;

-- name: ClearStates :exec
DELETE FROM resource_state WHERE environment = $1;

-- name: ClearVersions :exec
DELETE FROM version WHERE environment = $1;

-- name: ClearContents :exec
DELETE FROM resource_content c USING resource r WHERE r.environment = $1 AND c.resource = r.key;

-- name: ClearResources :exec
DELETE FROM resource WHERE environment = $1;

-- name: ClearCompiles :exec
DELETE FROM compile WHERE environment = $1;

-- name: ClearAgents :exec
DELETE FROM agent WHERE environment = $1;

-- name: ClearDryRuns :exec
DELETE FROM dryrun WHERE environment = $1;

-- name: ClearFactRequests :exec
DELETE FROM fact_request WHERE environment = $1;

-- name: ClearDrift :exec
DELETE FROM drift WHERE environment = $1;

-- name: ClearOverrides :exec
DELETE FROM override WHERE environment = $1;

-- name: ClearNotifications :exec
DELETE FROM notification WHERE environment = $1;

-- name: ClearParameters :exec
DELETE FROM parameter WHERE environment = $1;

-- name: SettingSet :exec
UPDATE environment SET settings = jsonb_set(settings, ARRAY[$2::text], $3::jsonb) WHERE id = $1;

-- name: SettingsSet :exec
-- A null sets a setting back to its default.
UPDATE environment SET settings = (settings || $2::jsonb) - coalesce(
    (SELECT array_agg(key) FROM jsonb_each($2::jsonb) WHERE value = 'null'::jsonb), '{}')
WHERE id = $1;

-- name: SettingDelete :exec
UPDATE environment SET settings = settings - $2::text WHERE id = $1;

-- name: SettingsProtect :exec
UPDATE environment SET
    settings = settings || $2::jsonb,
    protected = (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(protected) WHERE value <> to_jsonb($3::text))
             || (SELECT coalesce(jsonb_object_agg(name, $3::text), '{}') FROM jsonb_object_keys($2::jsonb) AS name)
WHERE id = $1;

-- name: SecretSet :exec
INSERT INTO environment_secret (environment, name, sealed) VALUES ($1, $2, $3)
ON CONFLICT (environment, name) DO UPDATE SET sealed = excluded.sealed;

-- name: SecretDelete :exec
DELETE FROM environment_secret WHERE environment = $1 AND name = $2;

-- name: SecretList :many
SELECT name, sealed FROM environment_secret WHERE environment = $1;
