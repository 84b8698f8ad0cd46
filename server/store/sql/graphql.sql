-- Lists that are read through a window (window.go), and what is shown of their items. The columns of a list's statement
-- are what it can be sorted and filtered by; the details of a page are read with a statement of their own.

-- name: WindowResources :many
-- Written so that a page in the order of an index of resource reads no more rows than it shows.
SELECT r.key, s.content, r.id, r.type, r.agent, r.value, s.blocked, s.last_run, s.is_deploying, s.orphaned > 0 AS orphan,
       CASE WHEN s.orphaned = 0 THEN s.compliance END AS compliance,
       CASE WHEN s.orphaned = 0 THEN s.compliance ELSE '~' END COLLATE "C" AS compliance_order,
       s.compliance AS state_compliance,
       CASE WHEN s.orphaned > 0 THEN s.orphaned
            ELSE (SELECT v.number FROM version v WHERE v.environment = $1 AND v.status = 'active') END AS version,
       (SELECT c.purged FROM resource_content c WHERE c.key = s.content) AS purged
FROM resource r JOIN resource_state s ON s.resource = r.key
WHERE r.environment = $1;

-- name: WindowResourcesCounted :many
-- The same rows, for counting. Every state has its resource, and is joined in a way that lets the planner leave the
-- resource out where no condition needs it.
SELECT r.type, r.agent, r.value, s.blocked, s.last_run, s.is_deploying, s.orphaned > 0 AS orphan,
       CASE WHEN s.orphaned = 0 THEN s.compliance END AS compliance,
       (SELECT c.purged FROM resource_content c WHERE c.key = s.content) AS purged
FROM resource_state s LEFT JOIN resource r ON r.key = s.resource
WHERE s.environment = $1;

-- name: WindowVersionResources :many
-- The resources of a version that have a state, since they were released at least once.
SELECT r.key, c.key AS content, r.id, r.type, r.agent, r.value, s.blocked, s.last_run, s.is_deploying,
       s.orphaned > 0 AS orphan,
       CASE WHEN s.orphaned = 0 THEN s.compliance END AS compliance,
       CASE WHEN s.orphaned = 0 THEN s.compliance ELSE '~' END COLLATE "C" AS compliance_order,
       v.number AS version, c.purged
FROM version v, unnest(v.contents) AS k(key), resource_content c, resource r, resource_state s
WHERE v.environment = $1 AND v.number = $2 AND c.key = k.key AND r.key = c.resource AND s.resource = r.key;

-- name: WindowResourceDetails :many
-- In the order of the arguments: the keys of resources, of their contents, and the versions that have them. The
-- attributes are left out unless they are asked for.
SELECT p.rank, p.version, r.id, r.first_seen, s.compliance, s.last_run, s.blocked, s.is_deploying, s.last_run_at,
       s.last_success, s.last_deployed, s.deployed_hash, s.intent_hash, s.last_events, s.attempts, s.orphaned,
       s.parked, s.parked_at, s.retry_at, s.failed_code, s.heals, s.drifted,
       CASE WHEN $4 THEN c.attributes ELSE '{}' END AS attributes,
       c.attribute_hash, c.requires, c.resource_set, c.undefined, c.purged
FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) WITH ORDINALITY AS p(key, content, version, rank)
JOIN resource r ON r.key = p.key
JOIN resource_state s ON s.resource = p.key
JOIN resource_content c ON c.key = p.content
ORDER BY p.rank;

-- name: WindowNotifications :many
SELECT id, environment, created, last, times, severity, title, message, uri, compile, read, cleared
FROM notification WHERE environment = $1;

-- name: WindowEnvironments :many
-- Those with an id of the argument; all when it is null.
SELECT e.id, e.project, p.name AS project_name, e.name, e.repo_url, e.repo_branch, e.repo_subdir,
       e.description, e.icon, e.halted, e.halted_by, e.halted_at, e.tags, e.settings, e.protected, e.created,
       e.number,
       coalesce((SELECT i.reason FROM intervention i WHERE e.halted AND i.environment = e.id AND i.kind = 'halt'
                 ORDER BY i.key DESC LIMIT 1), '') AS halted_reason,
       (SELECT coalesce(json_agg(o ORDER BY o.until, o.id), '[]') FROM override o
        WHERE o.environment = e.id AND o.ended IS NULL AND o.until > now()) AS overrides,
       e.last_version,
       EXISTS (SELECT FROM compile c WHERE c.environment = e.id AND c.started IS NOT NULL AND c.completed IS NULL
               AND c.substitute IS NULL) AS compiling
FROM environment e JOIN project p ON p.id = e.project
WHERE $1::uuid[] IS NULL OR e.id = ANY ($1);

-- name: StateSummary :many
SELECT last_run, blocked, compliance, is_deploying, count(*) AS count
FROM resource_state WHERE environment = $1 AND orphaned = 0
GROUP BY last_run, blocked, compliance, is_deploying;
