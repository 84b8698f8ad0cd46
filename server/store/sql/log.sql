-- name: LogBefore :many
-- The log of an environment before a place, newest first. It looks at $5 actions before the place ($2, $3) and returns
-- those that match, and the last that it looked at, whatever that is: the search goes on from there. Nothing that ended
-- before $4 is of interest. The caller looks again at what matches: $10 and $11 look at messages as they are stored.
SELECT id, environment, kind, resource, version, started, finished, status, change, '{}'::json AS changes, messages::json, look
FROM (
    SELECT a.*, row_number() OVER (ORDER BY finished DESC, id DESC) AS look
    FROM action a
    WHERE environment = $1 AND finished IS NOT NULL AND messages <> '[]'
      AND (finished, id) < ($2::timestamptz, $3::uuid) AND finished >= $4
    ORDER BY finished DESC, id DESC
    LIMIT $5
) AS l
WHERE look = $5 OR (
      ($6 = '' OR kind = $6)
  AND ($7 = '' OR position(lower($7) in lower(split_part(split_part(resource, '[', 2), ',', 1))) > 0)
  AND ($8 = '' OR position(lower($8) in lower(split_part(resource, '[', 1))) > 0)
  AND ($9 = '' OR position(lower($9) in lower(resource)) > 0)
  AND ($10 = '' OR position(lower($10) in lower(messages)) > 0)
  AND ($11::text[] IS NULL OR messages LIKE ANY ($11)))
ORDER BY finished DESC, id DESC
LIMIT $12;

-- name: LogAfter :many
-- The same after a place, oldest first. Nothing that ended after $4 is of interest.
SELECT id, environment, kind, resource, version, started, finished, status, change, '{}'::json AS changes, messages::json, look
FROM (
    SELECT a.*, row_number() OVER (ORDER BY finished ASC, id ASC) AS look
    FROM action a
    WHERE environment = $1 AND finished IS NOT NULL AND messages <> '[]'
      AND (finished, id) > ($2::timestamptz, $3::uuid) AND finished <= $4
    ORDER BY finished ASC, id ASC
    LIMIT $5
) AS l
WHERE look = $5 OR (
      ($6 = '' OR kind = $6)
  AND ($7 = '' OR position(lower($7) in lower(split_part(split_part(resource, '[', 2), ',', 1))) > 0)
  AND ($8 = '' OR position(lower($8) in lower(split_part(resource, '[', 1))) > 0)
  AND ($9 = '' OR position(lower($9) in lower(resource)) > 0)
  AND ($10 = '' OR position(lower($10) in lower(messages)) > 0)
  AND ($11::text[] IS NULL OR messages LIKE ANY ($11)))
ORDER BY finished ASC, id ASC
LIMIT $12;

-- name: LogBeforeOf :many
-- The log of one resource ($13) before a place. OFFSET 0 has the planner look up its actions, instead of searching those of
-- all resources for them.
SELECT id, environment, kind, resource, version, started, finished, status, change, '{}'::json AS changes, messages::json, look
FROM (
    SELECT a.*, row_number() OVER (ORDER BY finished DESC, id DESC) AS look
    FROM (SELECT * FROM action
          WHERE environment = $1 AND resource = $13 AND finished IS NOT NULL AND messages <> '[]' OFFSET 0) AS a
    WHERE (finished, id) < ($2::timestamptz, $3::uuid) AND finished >= $4
    ORDER BY finished DESC, id DESC
    LIMIT $5
) AS l
WHERE look = $5 OR (
      ($6 = '' OR kind = $6)
  AND ($7 = '' OR position(lower($7) in lower(split_part(split_part(resource, '[', 2), ',', 1))) > 0)
  AND ($8 = '' OR position(lower($8) in lower(split_part(resource, '[', 1))) > 0)
  AND ($9 = '' OR position(lower($9) in lower(resource)) > 0)
  AND ($10 = '' OR position(lower($10) in lower(messages)) > 0)
  AND ($11::text[] IS NULL OR messages LIKE ANY ($11)))
ORDER BY finished DESC, id DESC
LIMIT $12;

-- name: LogAfterOf :many
-- The same after a place.
SELECT id, environment, kind, resource, version, started, finished, status, change, '{}'::json AS changes, messages::json, look
FROM (
    SELECT a.*, row_number() OVER (ORDER BY finished ASC, id ASC) AS look
    FROM (SELECT * FROM action
          WHERE environment = $1 AND resource = $13 AND finished IS NOT NULL AND messages <> '[]' OFFSET 0) AS a
    WHERE (finished, id) > ($2::timestamptz, $3::uuid) AND finished <= $4
    ORDER BY finished ASC, id ASC
    LIMIT $5
) AS l
WHERE look = $5 OR (
      ($6 = '' OR kind = $6)
  AND ($7 = '' OR position(lower($7) in lower(split_part(split_part(resource, '[', 2), ',', 1))) > 0)
  AND ($8 = '' OR position(lower($8) in lower(split_part(resource, '[', 1))) > 0)
  AND ($9 = '' OR position(lower($9) in lower(resource)) > 0)
  AND ($10 = '' OR position(lower($10) in lower(messages)) > 0)
  AND ($11::text[] IS NULL OR messages LIKE ANY ($11)))
ORDER BY finished ASC, id ASC
LIMIT $12;
