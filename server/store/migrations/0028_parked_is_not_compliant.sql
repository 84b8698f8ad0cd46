-- A parked resource is never compliant: nobody looks after it. Until now a contested one, whose drift was reversed too
-- often, counted as compliant although something else had changed it back.
UPDATE drift d SET ended = NULL, ending = ''
FROM resource_state s JOIN resource r ON r.key = s.resource
WHERE s.parked = 'contested' AND s.compliance = 'compliant' AND s.orphaned = 0
  AND d.environment = s.environment AND d.resource = r.id AND d.ending = 'healed'
  AND d.ended = (SELECT max(l.ended) FROM drift l WHERE l.environment = d.environment AND l.resource = d.resource)
  AND NOT EXISTS (SELECT FROM drift o
                  WHERE o.environment = d.environment AND o.resource = d.resource AND o.attribute = d.attribute AND o.ended IS NULL);
UPDATE resource_state SET compliance = 'non_compliant', deployed_hash = '', drifted = orphaned = 0
WHERE parked <> '' AND compliance = 'compliant';
ALTER TABLE resource_state
    ADD CONSTRAINT state_parked_is_not_compliant CHECK (parked = '' OR compliance <> 'compliant');
