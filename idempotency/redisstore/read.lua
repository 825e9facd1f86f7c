-- A lookup.
-- KEYS: record.
return answer('read')
