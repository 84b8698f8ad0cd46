-- name: StandingFacts :many
-- What is deployed in environments, what became of their newest runs, and what stands between the two. Previews never
-- count. A run that ended is looked for among the newest 100.
SELECT e.id AS environment,
    (SELECT to_json(x) FROM (
        SELECT number, created, released, status, total, provenance, hold FROM version
        WHERE environment = e.id AND status = 'active') x) AS active,
    (SELECT to_json(x) FROM (
        SELECT v.number, v.created, v.status, v.total, v.provenance, v.hold FROM version v
        WHERE v.environment = e.id AND v.status = 'candidate' AND NOT v.preview
          AND v.number > COALESCE((SELECT a.number FROM version a WHERE a.environment = e.id AND a.status = 'active'), 0)
        ORDER BY v.number DESC LIMIT 1) x) AS newer,
    (SELECT to_json(x) FROM (
        SELECT kind, commit, message, advice, since, checked, reason FROM git_state WHERE environment = e.id) x) AS git,
    (SELECT to_json(x) FROM (
        SELECT c.id, c.revision, c.trigger_type, c.requested, c.started, c.completed, c.success, c.version, c.cancelled_by, c.cancelled_why, c.cancelled_at,
               (SELECT min(o.requested) FROM (
                    SELECT n.requested, n.revision FROM compile n
                    WHERE n.environment = e.id AND n.revision IS NOT NULL AND NOT n.preview ORDER BY n.requested DESC LIMIT 50) o
                WHERE o.revision->>'commit' = c.revision->>'commit') AS seen
        FROM compile c
        WHERE c.environment = e.id AND c.revision IS NOT NULL AND c.substitute IS NULL AND NOT c.preview AND c.export
        ORDER BY c.requested DESC, c.id DESC LIMIT 1) x) AS tip,
    (SELECT to_json(x) FROM (
        SELECT c.id, c.revision, c.trigger_type, c.requested, c.started, c.completed, c.success, c.version, c.cancelled_by, c.cancelled_why, c.cancelled_at,
               c.diagnostics->0->>'message' AS diagnostic,
               (SELECT encode(p.bytes, 'base64') FROM stage_output p
                WHERE p.stream = 2 AND p.stage = (SELECT id FROM stage WHERE compile = c.id AND return_code <> 0 ORDER BY position DESC LIMIT 1)
                  AND NOT c.success
                ORDER BY p.start DESC LIMIT 1) AS printed
        FROM (SELECT * FROM compile WHERE environment = e.id ORDER BY requested DESC LIMIT 100) c
        WHERE c.completed IS NOT NULL AND c.substitute IS NULL AND NOT c.preview AND c.export AND c.superseded_by IS NULL
        ORDER BY c.completed DESC, c.requested DESC, c.id DESC LIMIT 1) x) AS last,
    (SELECT to_json(x) FROM (
        SELECT c.id, c.revision, c.trigger_type, c.requested, c.started, c.cancelled_by, c.cancelled_why, c.cancelled_at,
               (SELECT s.name FROM stage s WHERE s.compile = c.id AND s.completed IS NULL ORDER BY s.position DESC LIMIT 1) AS stage
        FROM compile c
        WHERE c.environment = e.id AND c.completed IS NULL AND c.started IS NOT NULL AND c.substitute IS NULL AND NOT c.preview
        LIMIT 1) x) AS running,
    (SELECT to_json(x) FROM (
        SELECT c.id, c.revision, c.trigger_type, c.requested FROM compile c
        WHERE c.environment = e.id AND c.completed IS NULL AND c.started IS NULL AND NOT c.preview
        ORDER BY c.requested, c.id LIMIT 1) x) AS waiting,
    (SELECT json_agg(x) FROM (
        SELECT commit, by, reason, at FROM git_block WHERE environment = e.id AND ended IS NULL ORDER BY id DESC LIMIT 100) x) AS blocks,
    (SELECT to_json(x) FROM (
        SELECT commit, subject, author, source_name, created, gates FROM promotion
        WHERE environment = e.id AND state = 'waiting') x) AS promotion
FROM environment e WHERE e.id = ANY($1::uuid[]);
