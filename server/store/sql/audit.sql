-- name: AuditAdd :exec
INSERT INTO audit (at, actor, kind, credential, address, door, verb, project, project_name, environment, environment_name,
                   subject, before, after, reason, outcome, problem)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: AuditRows :list
-- Those of an environment, of a project, or of the whole server when both are null.
SELECT id, at, actor, kind, credential, address, door, verb, project, project_name, environment, environment_name,
       subject, before, after, reason, outcome, problem
FROM audit WHERE ($1::uuid IS NULL OR project = $1) AND ($2::uuid IS NULL OR environment = $2);

-- name: AuditAfter :many
-- The next entries in the order in which they were written, for an export.
SELECT id, at, actor, kind, credential, address, door, verb, project, project_name, environment, environment_name,
       subject, before, after, reason, outcome, problem
FROM audit WHERE ($1::uuid IS NULL OR project = $1) AND ($2::uuid IS NULL OR environment = $2) AND id > $3
ORDER BY id LIMIT $4;

-- name: AuditRetention :exec
SET LOCAL ordain.audit_retention = 'on';

-- name: AuditDelete :exec
DELETE FROM audit WHERE at < $1;

-- name: SettingChanges :many
-- Who last changed each setting of an environment, and when: one at a time, or several that were copied.
SELECT DISTINCT ON (name) name, actor, at
FROM (
    SELECT substr(subject, 9) AS name, actor, at, id FROM audit
    WHERE environment = $1 AND verb = 'environment.setting' AND outcome = 'done' AND subject LIKE 'setting %'
    UNION ALL
    SELECT json_object_keys(after), actor, at, id FROM audit
    WHERE environment = $1 AND verb = 'environment.setting' AND outcome = 'done' AND subject LIKE 'settings of %'
      AND json_typeof(after) = 'object'
) AS change
ORDER BY name, at DESC, id DESC;
