-- A lookup.
-- KEYS: record; clock record.
-- ARGV: largest time seen by the caller.
return answer('read')
