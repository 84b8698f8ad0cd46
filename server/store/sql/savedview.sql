-- name: SavedViews :many
SELECT name, list, filter FROM saved_view WHERE environment = $1 AND person IS NOT DISTINCT FROM $2::uuid ORDER BY name;

-- name: SavedViewPut :exec
-- Replaces the view of this name; a new one is only added if there are fewer than $6.
INSERT INTO saved_view (environment, person, name, filter, saved, list)
SELECT $1, $2::uuid, $3, $4, $5, $7
WHERE (SELECT count(*) FROM saved_view WHERE environment = $1 AND person IS NOT DISTINCT FROM $2::uuid AND name <> $3) < $6::int
ON CONFLICT (environment, coalesce(person::text, ''), name) DO UPDATE SET list = excluded.list, filter = excluded.filter, saved = excluded.saved;

-- name: SavedViewDelete :exec
DELETE FROM saved_view WHERE environment = $1 AND person IS NOT DISTINCT FROM $2::uuid AND name = $3;
