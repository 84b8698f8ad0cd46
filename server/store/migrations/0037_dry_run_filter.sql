-- since: 35
-- A dry run of resources that a filter chose: the filter as its client sent it, what the client keeps with the dry run,
-- and the ids that the filter matched when it began. NULL chooses all.
ALTER TABLE dryrun
    ADD COLUMN resource_filter json,
    ADD COLUMN context json,
    ADD COLUMN chosen text[];
