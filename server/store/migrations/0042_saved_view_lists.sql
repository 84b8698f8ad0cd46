-- since: 35
-- Which list a saved view filters; '' is the list of resources, the only one until now.
ALTER TABLE saved_view ADD COLUMN list text NOT NULL DEFAULT '';
