-- name: PersonalTokenAdd :exec
INSERT INTO personal_token (id, person, name, hash, roles, project, environment, tag, created, expires)
SELECT $1, p.id, $3, $4, $5, $6, $7, $8, $9, $10 FROM person p WHERE p.id = $2 AND NOT p.disabled;

-- name: PersonalTokenList :many
SELECT id, person, name, roles, project, environment, tag, created, expires, last_used FROM personal_token
WHERE ($1::uuid IS NULL OR person = $1) AND ($2 = '' OR hash = $2) ORDER BY created DESC, id;

-- name: PersonalTokenDelete :exec
DELETE FROM personal_token WHERE person = $1 AND id = $2;

-- name: PersonalTokenUsed :exec
UPDATE personal_token SET last_used = $2 WHERE id = $1;

-- name: EnvironmentTokenAdd :exec
INSERT INTO environment_token (id, environment, client_types, idempotent, created_by, issued, expires)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (environment, client_types) WHERE idempotent AND revoked IS NULL DO NOTHING;

-- name: EnvironmentTokenSame :one
SELECT id, environment, client_types, idempotent, created_by, issued, expires, revoked, last_used FROM environment_token
WHERE environment = $1 AND client_types = $2 AND idempotent AND revoked IS NULL;

-- name: EnvironmentTokenList :many
SELECT id, environment, client_types, idempotent, created_by, issued, expires, revoked, last_used FROM environment_token
WHERE ($1::uuid IS NULL OR environment = $1) AND ($2::uuid IS NULL OR id = $2) ORDER BY issued DESC, id;

-- name: EnvironmentTokenRevoke :exec
UPDATE environment_token SET revoked = coalesce(revoked, $3) WHERE environment = $1 AND id = $2;

-- name: EnvironmentTokenUsed :exec
UPDATE environment_token SET last_used = $2 WHERE id = $1;

-- name: TokenKeyAdd :exec
INSERT INTO token_key (sealed) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: TokenKeyGet :one
SELECT sealed FROM token_key;

-- name: TrustAdd :exec
INSERT INTO token_trust (id, project, name, issuer, audience, claims, role, environment, lifetime, created, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: TrustList :many
SELECT id, project, name, issuer, audience, claims, role, environment, lifetime, created, created_by, last_used
FROM token_trust
WHERE ($1::uuid IS NULL OR project = $1) AND ($2 = '' OR issuer = $2) AND ($3::uuid IS NULL OR id = $3) ORDER BY name, id;

-- name: TrustDelete :exec
DELETE FROM token_trust WHERE project = $1 AND id = $2;

-- name: TrustUsed :exec
UPDATE token_trust SET last_used = $2 WHERE id = $1;

-- name: TrustBindingsDelete :exec
DELETE FROM role_binding WHERE kind = 'token' AND subject = $1;

-- name: JobTokenAdd :exec
INSERT INTO job_token (hash, id, trust, name, expires) VALUES ($1, $2, $3, $4, $5);

-- name: JobTokenGet :one
SELECT id, trust, name, expires FROM job_token WHERE hash = $1 AND expires > $2;

-- name: TokenForgetPersonal :exec
DELETE FROM personal_token WHERE expires < $1;

-- name: TokenForgetEnvironment :exec
DELETE FROM environment_token WHERE expires < $1 OR revoked < $1;

-- name: TokenForgetJob :exec
DELETE FROM job_token WHERE expires <= $1;

-- name: PersonByIdentity :one
SELECT id FROM person WHERE identity = $1;

-- name: PersonIdentify :exec
INSERT INTO person (id, name, method, identity, groups) VALUES ($1, $2, 'oidc', $3, $4);

-- name: PersonGroups :exec
UPDATE person SET groups = $2 WHERE id = $1 AND groups IS DISTINCT FROM $2;
