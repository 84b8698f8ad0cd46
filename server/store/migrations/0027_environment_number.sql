-- The number of an environment decides under which user its code runs, so it is never given twice:
-- files of a deleted environment must not belong to a new one.
CREATE SEQUENCE environment_number AS integer;
ALTER TABLE environment ADD COLUMN number integer NOT NULL UNIQUE DEFAULT nextval('environment_number');
ALTER SEQUENCE environment_number OWNED BY environment.number;
