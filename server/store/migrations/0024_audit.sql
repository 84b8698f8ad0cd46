-- Who changed what. Rows refer to no other table: they outlive what they are about.
CREATE TABLE audit (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at               timestamptz NOT NULL,
    actor            text NOT NULL,
    kind             text NOT NULL,
    credential       text NOT NULL,
    address          text NOT NULL,
    door             text NOT NULL,
    verb             text NOT NULL,
    project          uuid,
    project_name     text NOT NULL,
    environment      uuid,
    environment_name text NOT NULL,
    subject          text NOT NULL,
    before           json,
    after            json,
    reason           text NOT NULL,
    outcome          text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
    problem          text NOT NULL
);
CREATE INDEX audit_at ON audit (at, id);
CREATE INDEX audit_project ON audit (project, at, id);
CREATE INDEX audit_environment ON audit (environment, at, id);

-- A row can be neither changed nor deleted; only those that are older than the retention, which is 30 days at least.
CREATE FUNCTION audit_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < now() - interval '30 days' AND current_setting('ordain.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_keep BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_keep();
CREATE TRIGGER audit_keep_all BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_keep();
