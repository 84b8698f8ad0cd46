-- What a graph shows. Each statement has the scope as $2 to $5: the agent, the type, the resource set, the statuses; what
-- is empty allows all. A cause keeps what requires it from being deployed; what is stuck is kept from it.

-- name: GraphNodes :many
-- Those that are not as intended come first, since a limit cuts the rest.
SELECT x.id, x.status, c.resource_set, x.parked, x.cause, x.stuck, cardinality(c.requires) AS requires
FROM (
    SELECT r.id, s.status, s.content, s.parked <> '' AS parked,
           s.compliance = 'undefined' OR s.last_run = 'failed' OR s.parked <> '' AS cause,
           s.compliance <> 'undefined' AND (s.blocked <> 'not_blocked' OR s.last_run = 'skipped') AS stuck
    FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0 AND ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3)
      AND ($4 = '' OR EXISTS (SELECT FROM resource_content c WHERE c.key = s.content AND c.resource_set = $4))
      AND ($5::text[] = '{}' OR s.status = ANY ($5))
    ORDER BY s.status = 'deployed', r.id
    LIMIT $6
) AS x JOIN resource_content c ON c.key = x.content
ORDER BY x.status = 'deployed', x.id;

-- name: GraphCount :one
-- At most $6, which saves reading the rest.
SELECT count(*) AS count FROM (SELECT FROM resource_state s JOIN resource r ON r.key = s.resource
WHERE s.environment = $1 AND s.orphaned = 0 AND ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3)
  AND ($4 = '' OR EXISTS (SELECT FROM resource_content c WHERE c.key = s.content AND c.resource_set = $4))
  AND ($5::text[] = '{}' OR s.status = ANY ($5))
LIMIT $6) AS bounded;

-- name: GraphNamed :many
SELECT r.id, s.status, c.resource_set, s.parked <> '' AS parked,
       s.compliance = 'undefined' OR s.last_run = 'failed' OR s.parked <> '' AS cause,
       s.compliance <> 'undefined' AND (s.blocked <> 'not_blocked' OR s.last_run = 'skipped') AS stuck,
       cardinality(c.requires) AS requires
FROM resource r JOIN resource_state s ON s.resource = r.key JOIN resource_content c ON c.key = s.content
WHERE r.environment = $1 AND s.orphaned = 0 AND r.id = ANY ($2);

-- name: GraphNeeds :many
-- What the resources $6 require, but for $7. When $8 is set: only what keeps them from being deployed.
SELECT r.id, s.status, c.resource_set, s.parked <> '' AS parked,
       s.compliance = 'undefined' OR s.last_run = 'failed' OR s.parked <> '' AS cause,
       s.compliance <> 'undefined' AND (s.blocked <> 'not_blocked' OR s.last_run = 'skipped') AS stuck,
       cardinality(c.requires) AS requires
FROM resource r JOIN resource_state s ON s.resource = r.key JOIN resource_content c ON c.key = s.content
WHERE r.environment = $1 AND s.orphaned = 0 AND ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3)
  AND ($4 = '' OR c.resource_set = $4) AND ($5::text[] = '{}' OR s.status = ANY ($5))
  AND r.id = ANY (ARRAY(
      SELECT need.id
      FROM resource fr JOIN resource_state fs ON fs.resource = fr.key JOIN resource_content fc ON fc.key = fs.content,
           unnest(fc.requires) AS need(id)
      WHERE fr.environment = $1 AND fr.id = ANY ($6) AND fs.orphaned = 0))
  AND r.id <> ALL ($7)
  AND (NOT $8 OR s.compliance = 'undefined' OR s.last_run IN ('failed', 'skipped') OR s.parked <> ''
       OR s.blocked <> 'not_blocked')
ORDER BY s.status = 'deployed', r.id
LIMIT $9;

-- name: GraphDependents :many
-- What requires the resources $6, but for $7. OFFSET 0 keeps the planner from reading all states.
SELECT r.id, s.status, dc.resource_set, s.parked <> '' AS parked,
       s.compliance = 'undefined' OR s.last_run = 'failed' OR s.parked <> '' AS cause,
       s.compliance <> 'undefined' AND (s.blocked <> 'not_blocked' OR s.last_run = 'skipped') AS stuck,
       cardinality(dc.requires) AS requires
FROM (SELECT resource, key, resource_set, requires FROM resource_content
      WHERE requires <> '{}' AND requires && $6::text[] COLLATE "C" OFFSET 0) dc,
     LATERAL (SELECT * FROM resource_state
              WHERE resource = dc.resource AND content = dc.key AND environment = $1 AND orphaned = 0 OFFSET 0) s,
     LATERAL (SELECT * FROM resource WHERE key = dc.resource OFFSET 0) r
WHERE ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3) AND ($4 = '' OR dc.resource_set = $4)
  AND ($5::text[] = '{}' OR s.status = ANY ($5)) AND r.id <> ALL ($7)
ORDER BY s.status = 'deployed', r.id
LIMIT $8;

-- name: GraphBlocking :many
-- What keeps each of the resources $2 from being deployed: at most $3 of what it requires, causes first. Of each, the
-- first hundred requirements are looked at.
SELECT r.id AS to_id, w.id, w.status, w.resource_set, w.parked, w.cause, w.stuck, w.requires
FROM resource r JOIN resource_state s ON s.resource = r.key,
     LATERAL (
         SELECT nr.id, ns.status, nc.resource_set, ns.parked <> '' AS parked,
                ns.compliance = 'undefined' OR ns.last_run = 'failed' OR ns.parked <> '' AS cause,
                ns.compliance <> 'undefined' AND (ns.blocked <> 'not_blocked' OR ns.last_run = 'skipped') AS stuck,
                cardinality(nc.requires) AS requires
         FROM unnest((SELECT c.requires[1:100] FROM resource_content c WHERE c.key = s.content)) AS n (id),
              LATERAL (SELECT key, id FROM resource WHERE environment = $1 AND id = n.id OFFSET 0) nr,
              LATERAL (SELECT * FROM resource_state
                       WHERE resource = nr.key AND orphaned = 0
                         AND (compliance = 'undefined' OR last_run IN ('failed', 'skipped') OR parked <> ''
                              OR blocked <> 'not_blocked') OFFSET 0) ns,
              LATERAL (SELECT resource_set, requires FROM resource_content WHERE key = ns.content OFFSET 0) nc
         ORDER BY cause DESC, nr.id LIMIT $3
     ) AS w
WHERE r.environment = $1 AND r.id = ANY ($2) AND s.orphaned = 0;

-- name: GraphEdges :many
-- Which of the resources $2 require which of them.
SELECT need.id AS from_id, r.id AS to_id
FROM resource r JOIN resource_state s ON s.resource = r.key JOIN resource_content c ON c.key = s.content,
     unnest(c.requires) AS need(id)
WHERE r.environment = $1 AND r.id = ANY ($2) AND s.orphaned = 0 AND need.id = ANY ($2)
ORDER BY r.id, need.id
LIMIT $3;

-- name: GraphGroups :many
-- Groups by agent when $6 is set, and by type when $7 is. Those with the most that is not as intended come first.
SELECT agent, type, sum(n) AS total, array_agg(status ORDER BY status) AS statuses, array_agg(n ORDER BY status) AS counts,
       sum(parked) AS parked, sum(cause) AS cause, sum(stuck) AS stuck, count(*) OVER () AS groups, sum(sum(n)) OVER () AS resources
FROM (
    SELECT CASE WHEN $6 THEN r.agent ELSE '' END AS agent, CASE WHEN $7 THEN r.type ELSE '' END AS type, s.status,
           count(*)::integer AS n, count(*) FILTER (WHERE s.parked <> '') AS parked,
           count(*) FILTER (WHERE s.compliance = 'undefined' OR s.last_run = 'failed' OR s.parked <> '') AS cause,
           count(*) FILTER (WHERE s.compliance <> 'undefined'
                            AND (s.blocked <> 'not_blocked' OR s.last_run = 'skipped')) AS stuck
    FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0 AND ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3)
      AND ($4 = '' OR EXISTS (SELECT FROM resource_content c WHERE c.key = s.content AND c.resource_set = $4))
      AND ($5::text[] = '{}' OR s.status = ANY ($5))
    GROUP BY 1, 2, 3
) AS each
GROUP BY agent, type
ORDER BY COALESCE(sum(n) FILTER (WHERE status <> 'deployed'), 0) DESC, agent, type
LIMIT $8;

-- name: GraphGroupEdges :many
-- Edges between groups, whatever the states of the resources are ($5 is not used): they change with the version only. Each
-- end of an edge is found by the unique index of resource, so that no plan multiplies all resources with all.
SELECT CASE WHEN $6 THEN f.agent ELSE '' END AS from_agent, CASE WHEN $7 THEN f.type ELSE '' END AS from_type,
       CASE WHEN $6 THEN r.agent ELSE '' END AS to_agent, CASE WHEN $7 THEN r.type ELSE '' END AS to_type,
       count(*) AS edges
FROM resource_state s JOIN resource r ON r.key = s.resource JOIN resource_content c ON c.key = s.content,
     unnest(c.requires) AS need(id),
     LATERAL (SELECT key, agent, type FROM resource WHERE environment = $1 AND id = need.id OFFSET 0) f
WHERE s.environment = $1 AND s.orphaned = 0 AND c.requires <> '{}'
  AND ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3) AND ($4 = '' OR c.resource_set = $4)
  AND ($2 = '' OR f.agent = $2) AND ($3 = '' OR f.type = $3)
  AND ($6 AND f.agent <> r.agent OR $7 AND f.type <> r.type) AND $5::text[] IS NOT NULL
GROUP BY 1, 2, 3, 4
ORDER BY 5 DESC, 1, 2, 3, 4
LIMIT $8;

-- name: GraphGroupBlocking :many
-- Edges between groups whose end is stuck because of their start, counted over the first $9 stuck resources.
SELECT CASE WHEN $6 THEN f.agent ELSE '' END AS from_agent, CASE WHEN $7 THEN f.type ELSE '' END AS from_type,
       CASE WHEN $6 THEN t.agent ELSE '' END AS to_agent, CASE WHEN $7 THEN t.type ELSE '' END AS to_type,
       count(*) AS edges
FROM (
    SELECT r.agent, r.type, s.content
    FROM resource_state s JOIN resource r ON r.key = s.resource
    WHERE s.environment = $1 AND s.orphaned = 0 AND s.compliance <> 'undefined'
      AND (s.blocked <> 'not_blocked' OR s.last_run = 'skipped')
      AND ($2 = '' OR r.agent = $2) AND ($3 = '' OR r.type = $3)
      AND ($4 = '' OR EXISTS (SELECT FROM resource_content c WHERE c.key = s.content AND c.resource_set = $4))
      AND ($5::text[] = '{}' OR s.status = ANY ($5))
    LIMIT $9
) AS t JOIN resource_content c ON c.key = t.content,
     unnest(c.requires) AS need(id),
     LATERAL (SELECT key, agent, type FROM resource WHERE environment = $1 AND id = need.id OFFSET 0) f,
     LATERAL (SELECT FROM resource_state
              WHERE resource = f.key AND orphaned = 0
                AND (compliance = 'undefined' OR last_run IN ('failed', 'skipped') OR parked <> ''
                     OR blocked <> 'not_blocked') OFFSET 0) fs
WHERE ($6 AND f.agent <> t.agent OR $7 AND f.type <> t.type)
GROUP BY 1, 2, 3, 4
ORDER BY 5 DESC, 1, 2, 3, 4
LIMIT $8;
