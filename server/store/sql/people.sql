-- name: PersonCreate :exec
INSERT INTO person (id, name, method, password) VALUES ($1, $2, $3, $4);

-- name: PersonList :many
SELECT id, name, method, disabled, groups, created, last_login, EXISTS (
    SELECT FROM role_binding b WHERE b.person = p.id AND b.role = 'administrator'
        AND num_nonnulls(b.project, b.environment, nullif(b.tag, '')) = 0) AS administrator
FROM person p WHERE ($1::uuid IS NULL OR id = $1) AND ($2 = '' OR lower(name) = lower($2)) ORDER BY lower(name);

-- name: PersonPassword :one
SELECT password FROM person WHERE id = $1;

-- name: PersonPasswordSet :exec
UPDATE person SET password = $2 WHERE id = $1;

-- name: PersonRehash :exec
UPDATE person SET password = $3 WHERE id = $1 AND password = $2;

-- name: PersonDisable :exec
UPDATE person SET disabled = $2 WHERE id = $1;

-- name: PersonDelete :exec
DELETE FROM person WHERE id = $1;

-- name: PersonLoggedIn :exec
UPDATE person SET last_login = $2 WHERE id = $1;

-- name: PersonAny :one
SELECT EXISTS (SELECT FROM person);

-- name: PeopleLock :exec
LOCK TABLE person IN SHARE ROW EXCLUSIVE MODE;

-- name: AdministratorAny :one
SELECT EXISTS (SELECT FROM role_binding b LEFT JOIN person p ON p.id = b.person
    WHERE b.role = 'administrator' AND num_nonnulls(b.project, b.environment, nullif(b.tag, '')) = 0
        AND (b.kind = 'group' OR b.kind = 'user' AND NOT p.disabled));

-- name: RoleCreate :exec
INSERT INTO role (name, description, labels, verbs) VALUES ($1, $2, $3, $4);

-- name: RoleUpdate :exec
UPDATE role SET description = $2, labels = $3, verbs = $4 WHERE name = $1;

-- name: RoleList :many
SELECT name, description, labels, verbs FROM role ORDER BY name;

-- name: RoleLock :one
SELECT name FROM role WHERE name = $1 FOR UPDATE;

-- name: RoleBound :one
SELECT EXISTS (SELECT FROM role_binding WHERE role = $1);

-- name: RoleDelete :exec
DELETE FROM role WHERE name = $1;

-- name: BindingAdd :exec
INSERT INTO role_binding (id, kind, person, subject, role, project, environment, tag, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: BindingList :many
SELECT b.id, b.kind, b.person, coalesce(p.name, b.subject) AS subject, b.role, b.project, b.environment, b.tag, b.created,
    b.created_by
FROM role_binding b LEFT JOIN person p ON p.id = b.person
WHERE ($1::uuid IS NULL OR b.id = $1) AND ($2::uuid IS NULL OR b.person = $2) AND ($3::uuid IS NULL OR b.project = $3)
ORDER BY lower(coalesce(p.name, b.subject)), b.created, b.id;

-- name: BindingOf :many
SELECT b.id, b.kind, b.person, coalesce(p.name, b.subject) AS subject, b.role, b.project, b.environment, b.tag, b.created,
    b.created_by
FROM role_binding b LEFT JOIN person p ON p.id = b.person
WHERE b.person = $1
    OR b.kind = 'group' AND b.subject = ANY (SELECT unnest(groups) FROM person WHERE id = $1)
    OR b.kind = 'token' AND b.subject = $2
ORDER BY b.created, b.id;

-- name: BindingDelete :exec
DELETE FROM role_binding WHERE id = $1;

-- name: SessionSave :exec
INSERT INTO session (hash, id, person, client, address, agent, created, seen, expires, deadline)
SELECT $1, $2, p.id, $4, $5, $6, $7, $8, $9, $10 FROM person p WHERE p.id = $3 AND NOT p.disabled
ON CONFLICT (hash) DO UPDATE SET seen = excluded.seen, expires = excluded.expires;

-- name: SessionTouch :exec
UPDATE session SET seen = $2, expires = $3 WHERE hash = $1;

-- name: SessionGet :one
SELECT hash, id, person, client, address, agent, created, seen, expires, deadline FROM session WHERE hash = $1 AND expires > $2;

-- name: SessionList :many
SELECT hash, id, person, client, address, agent, created, seen, expires, deadline FROM session WHERE person = $1 AND expires > $2
ORDER BY seen DESC, id;

-- name: SessionDelete :exec
DELETE FROM session WHERE hash = $1;

-- name: SessionEnd :exec
DELETE FROM session WHERE person = $1 AND id = $2;

-- name: SessionEndAll :exec
DELETE FROM session WHERE person = $1 AND ($2::uuid IS NULL OR id <> $2);

-- name: SessionExpire :exec
DELETE FROM session WHERE expires <= $1;

-- name: LoginTry :one
INSERT INTO login_failure AS f (kind, subject, failures, last, blocked) VALUES ($1, $2, 1, $3, 'epoch')
ON CONFLICT (kind, subject) DO UPDATE SET
    failures = CASE WHEN f.blocked > $3 THEN f.failures WHEN f.last < $4 THEN 1 ELSE f.failures + 1 END,
    last = CASE WHEN f.blocked > $3 THEN f.last ELSE $3 END
RETURNING failures, blocked;

-- name: LoginBlock :exec
UPDATE login_failure SET blocked = $3 WHERE kind = $1 AND subject = $2;

-- name: LoginRefund :exec
UPDATE login_failure SET failures = CASE WHEN kind = 'user' THEN 0 ELSE greatest(failures - 1, 0) END, blocked = 'epoch'
WHERE kind = $1 AND subject = $2;

-- name: LoginForget :exec
DELETE FROM login_failure WHERE last < $1 AND blocked < $2;

-- name: FirstLinkSet :exec
INSERT INTO first_link (hash, expires) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET hash = excluded.hash, expires = excluded.expires;

-- name: FirstLinkGet :one
SELECT EXISTS (SELECT FROM first_link WHERE hash = $1 AND expires > $2);

-- name: FirstLinkUse :exec
DELETE FROM first_link WHERE hash = $1 AND expires > $2;
