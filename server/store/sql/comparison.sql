-- Comparisons are read once, row by row and without large values, and kept in memory as an index (server/comparison);
-- a page then reads only the rows that it shows.

-- name: ComparisonVersions :many
-- What differs between two versions. Resources of which only something that is not deployed differs, such as the
-- resource set, are left out. Of modified ones with at most $4 bytes of text a side, also the values.
WITH before AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $2
), after AS (
    SELECT k FROM version v, unnest(v.contents) AS k WHERE v.environment = $1 AND v.number = $3
), gone AS (
    SELECT c.* FROM (SELECT k FROM before EXCEPT SELECT k FROM after) AS x JOIN resource_content c ON c.key = x.k
), came AS (
    SELECT c.* FROM (SELECT k FROM after EXCEPT SELECT k FROM before) AS x JOIN resource_content c ON c.key = x.k
)
SELECT r.id, coalesce(b.key, 0) AS old, coalesce(a.key, 0) AS new,
       CASE WHEN b.key IS NULL THEN 'added' WHEN a.key IS NULL THEN 'deleted' ELSE 'modified' END AS kind,
       CASE WHEN a.key IS NOT NULL AND octet_length(b.attributes::text) <= $4::int AND b.requires = a.requires THEN b.attributes END AS before,
       CASE WHEN b.key IS NOT NULL AND octet_length(a.attributes::text) <= $4::int AND b.requires = a.requires THEN a.attributes END AS after,
       NULL::json AS changes
FROM gone b FULL JOIN came a ON a.resource = b.resource JOIN resource r ON r.key = coalesce(a.resource, b.resource)
WHERE b.key IS NULL OR a.key IS NULL OR b.attributes::text <> a.attributes::text OR b.requires <> a.requires;

-- name: ComparisonContents :many
SELECT key, attributes, requires FROM resource_content WHERE key = ANY ($1::bigint[]);

-- name: ComparisonDryRun :many
-- What a dry run found.
SELECT resource AS id, 0::bigint AS old, 0::bigint AS new, kind, NULL::json AS before, NULL::json AS after,
       CASE WHEN kind = 'modified' AND octet_length(attributes::text) <= $2::int THEN attributes END AS changes
FROM dryrun_diff WHERE dryrun = $1;

-- name: ComparisonDryRunDiffs :many
SELECT resource, kind, attributes, reason, behind FROM dryrun_diff WHERE dryrun = $1 AND resource = ANY ($2::text[]);

-- name: ComparisonDryRunChange :one
-- Both values of one attribute.
SELECT attributes -> $3::text AS change FROM dryrun_diff WHERE dryrun = $1 AND resource = $2;

-- name: VersionActiveBefore :one
-- The version that was active before another was made: the one that was released last before then, or before it was released.
SELECT b.number FROM version v JOIN version b ON b.environment = v.environment
WHERE v.environment = $1 AND v.number = $2 AND b.number < v.number AND NOT b.preview AND b.released IS NOT NULL
  AND b.released <= coalesce(v.released, b.released)
ORDER BY b.released DESC, b.number DESC LIMIT 1;

-- name: FileSizes :many
-- Of the files that the members of one of the projects may read.
SELECT f.sha1, octet_length(f.content) AS size FROM file f WHERE f.sha1 = ANY($1::text[]) AND (
    EXISTS (SELECT FROM file_reader r WHERE r.sha1 = f.sha1 AND r.project = ANY($2::uuid[])) OR
    NOT EXISTS (SELECT FROM file_reader r WHERE r.sha1 = f.sha1));

-- name: FileContents :many
SELECT sha1, content FROM file WHERE sha1 = ANY($1::text[]);
