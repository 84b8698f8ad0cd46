-- since: 35
-- The number belongs to a branch that is not merged here yet; its file takes the place of this one.
SELECT 1;
